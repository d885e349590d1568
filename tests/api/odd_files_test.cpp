// The `tandem` program on paths that are no regular file, or have no path: messages of a library,
// endless reading and waiting would be bugs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/api/digits.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::digits;
using tandem::testing::Ended;
using tandem::testing::run_program;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OddFiles : public ::testing::Test {
 protected:
  /// Users must never see messages of the standard library or other libraries, and nothing may wait
  /// for ever.
  Ended run(const std::string& arguments, const std::string& before = "") {
    const Ended ended =
        run_program(arguments + " 2>&1 </dev/null", before + "timeout --signal=KILL 60 ");
    EXPECT_THAT(ended.code, AnyOf(1, 2, 4)) << arguments << "\n" << ended.text;
    EXPECT_THAT(ended.text, Not(AnyOf(HasSubstr("filesystem error"), HasSubstr("json.exception"),
                                      HasSubstr("unexpected error"), HasSubstr("std::"),
                                      HasSubstr("basic_string"), HasSubstr("terminate called"))))
        << arguments;
    return ended;
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(OddFiles, NoModelAndNoConfigurationIsAPipeADeviceOrEmpty) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_directory(folder_ / "folder");
  std::ofstream(folder_ / "empty");
  std::ofstream(folder_ / "file") << "text";
  fs::create_symlink(folder_ / "loop", folder_ / "loop");
  const std::string long_name = folder_ / std::string(300, 'x');
  for (const std::string& path :
       {folder_ / "pipe", folder_ / "folder", folder_ / "empty", folder_ / "file",
        folder_ / "file/below", folder_ / "loop", folder_ / "none", long_name,
        std::string("/dev/zero"), std::string("''")}) {
    EXPECT_EQ(run("inspect " + path).code, 2) << path;
    EXPECT_EQ(run("policy plan --model " + path).code, 2) << path;
    for (const char* command : {"train ", "train --dry-run ", "bench ", "data check ",
                                "data prepare ", "policy names --config "}) {
      EXPECT_EQ(run(command + path).code, 2) << command << path;
    }
    EXPECT_EQ(run("train --dry-run " + digits + "train.toml model=\\\"" + path + "\\\"").code, 2)
        << path;
    run("eval " + path);
    run("predict " + path + " --data -");
    run("export " + path + " --to " + (folder_ / "out.onnx"));
  }
}

TEST_F(OddFiles, AFolderThatIsGoneIsNamed) {
  const std::string gone = folder_ / "gone";
  for (const std::string& arguments :
       {"train --dry-run " + digits + "train.toml --run-dir run",
        std::string("export run --to x.onnx"), std::string("inspect model.onnx"),
        std::string("train train.toml"),
        std::string("eval model.onnx --config " + digits + "train.toml"),
        "policy plan policy.toml --config " + digits + "train.toml",
        "policy plan --model " + digits + "model.onnx",
        "policy auto --config " + digits +
            "train.toml --budget gpu=1GiB --device gpu=emulated:0 --tries 20 --to new.toml",
        std::string("policy edit policy.toml --at '**' --set on=cpu"),
        "bench " + digits + "train.toml --trace trace.json"}) {
    const Ended ended = run(arguments, "mkdir " + gone + "; cd " + gone + "; rmdir " + gone + "; ");
    EXPECT_NE(ended.code, 0) << arguments << "\n" << ended.text;
  }
  const Ended named = run("train --dry-run " + digits + "train.toml --run-dir run",
                          "mkdir " + gone + "; cd " + gone + "; rmdir " + gone + "; ");
  EXPECT_EQ(named.code, 1);
  EXPECT_THAT(named.text, HasSubstr("the current folder cannot be read"));
}

TEST_F(OddFiles, NamesThatAreNoTextAreRefusedOrShown) {
  const std::string odd = folder_ / "$(printf '\\377')";
  const Ended run_dir = run("train --dry-run " + digits + "train.toml --run-dir \"" + odd + "\"");
  EXPECT_EQ(run_dir.code, 2);
  EXPECT_THAT(run_dir.text, HasSubstr("no UTF-8"));
  EXPECT_EQ(run("policy plan --model \"" + odd + "\"").code, 2);
  EXPECT_EQ(run("policy plan --model " + digits + "model.onnx --bind \"" + odd + "=3\"").code, 2);
  EXPECT_EQ(run("inspect \"" + odd + "\" --json").code, 2);
  const Ended edited = run_program("policy edit \"" + odd + "\" --at '**' --set on=cpu --json 2>&1",
                                   "echo 'policy = 1' > \"" + odd + "\"; ");
  EXPECT_EQ(edited.code, 0) << edited.text;
}

TEST_F(OddFiles, OutputsThatCannotBeAreNamed) {
  std::ofstream(folder_ / "file") << "text";
  fs::create_symlink(folder_ / "loop", folder_ / "loop");
  const std::string of = "policy auto --config " + digits +
                         "train.toml --budget gpu=1GiB --device gpu=emulated:0 --tries 20 --to ";
  for (const std::string& path :
       {folder_ / "file/below", folder_ / "loop", folder_ / "loop/below", folder_ / "none/below",
        folder_ / std::string(300, 'x'), std::string("/proc/none")}) {
    run(of + path);
    run(of + (folder_ / "new.toml") + " --save-profile " + path);
    run("bench " + digits + "train.toml --seconds 0.01 --trace " + path);
  }
}

TEST_F(OddFiles, DataAndProfilesAreRegularFiles) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_directory(folder_ / "folder");
  std::ofstream(folder_ / "empty");
  for (const std::string& path : {folder_ / "pipe", folder_ / "folder", folder_ / "empty"}) {
    const std::string files = "train.toml data.train.files=[\\\"" + path + "\\\"]";
    EXPECT_EQ(run("train --dry-run " + digits + files).code, 4) << path;
    EXPECT_EQ(run("data check " + digits + files).code, 4) << path;
    EXPECT_EQ(run("policy plan --config " + digits + "train.toml --profile " + path).code, 2)
        << path;
  }
}

}  // namespace
}  // namespace tandem::api
