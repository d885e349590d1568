// A dry run reports what the run would report about its directory, and leaves nothing there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::digits;
using ::testing::HasSubstr;

class DryRun : public ::testing::Test {
 protected:
  /// The error of a run into this directory, tried first without and then with a dry run.
  std::string refusal(const std::string& run_dir, TrainOptions options = {}) {
    const std::set<std::string> before = files();
    options.run_dir = run_dir;
    if (options.overrides.empty()) options.overrides = {"steps=1"};
    std::string said[2];
    for (const bool dry : {true, false}) {
      options.dry_run = dry;
      try {
        Trainer(config_, options).run();
        said[dry] = "no error";
      } catch (const Error& error) {
        said[dry] = std::to_string(static_cast<int>(error.kind())) + " " + error.what();
      }
      if (dry) {
        EXPECT_EQ(files(), before) << run_dir;
      }
    }
    EXPECT_EQ(said[1], said[0]) << run_dir;
    return said[1];
  }
  std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      all.insert(entry.path().string());
    return all;
  }

  tandem::testing::TemporaryFolder folder_;
  std::string config_ = digits + "train.toml";
};

TEST_F(DryRun, SaysWhichRunDirectoriesCannotBe) {
  std::ofstream(folder_ / "file") << "text";
  fs::create_directory(folder_ / "full");
  std::ofstream(folder_ / "full/notes.txt") << "text";
  fs::create_symlink(folder_ / "nowhere", folder_ / "link");
  fs::create_symlink(folder_ / "loop", folder_ / "loop");
  EXPECT_THAT(refusal(folder_ / "file"),
              HasSubstr("1 " + (folder_ / "file") +
                        ": cannot create folder: a file or link has this name (name another folder "
                        "with --run-dir or run_dir)"));
  EXPECT_THAT(refusal(folder_ / "file/run"), HasSubstr("cannot create folder"));
  EXPECT_THAT(refusal(folder_ / "new/deep/file"), HasSubstr("no error"));
  EXPECT_THAT(refusal(folder_ / "full"), HasSubstr("holds other files"));
  EXPECT_THAT(refusal(folder_ / "link"), HasSubstr("cannot create folder"));
  EXPECT_THAT(refusal(folder_ / "link/run"), HasSubstr("cannot create folder"));
  EXPECT_THAT(refusal(folder_ / "loop/run"), HasSubstr("cannot create folder"));
  EXPECT_THAT(refusal(folder_ / ("new2/" + std::string(300, 'x'))),
              HasSubstr("File name too long"));
  EXPECT_THAT(refusal("/proc/none/run"), HasSubstr("cannot create folder"));
  EXPECT_THAT(
      refusal(folder_ / "new/deep/file"),
      HasSubstr("2 " + (folder_ / "new/deep/file") + ": this directory holds a run already"));
}

TEST_F(DryRun, SaysWhereNumberedRunsCannotBe) {
  for (const char* file : {"train.toml", "model.onnx", "digits_train.npz", "digits_test.npz"})
    fs::copy(digits + file, folder_ / file);
  config_ = folder_ / "train.toml";
  std::ofstream(folder_ / "runs") << "text";
  EXPECT_THAT(refusal(""), HasSubstr("1 " + (folder_ / "runs") + ": cannot"));
  fs::remove(folder_ / "runs");
  fs::create_directories(folder_ / "runs/x-0007");
  TrainOptions named;
  named.overrides = {"steps=1", "name=\"x\""};
  EXPECT_EQ(refusal("", named), "no error");
  EXPECT_TRUE(fs::exists(folder_ / "runs/x-0008/summary.json"));
}

TEST_F(DryRun, SaysWhichRunsCannotGoOn) {
  EXPECT_EQ(refusal(folder_ / "run"), "no error");
  TrainOptions resume;
  resume.resume = true;
  resume.overrides = {"steps=2", "seed=7"};
  EXPECT_THAT(refusal(folder_ / "run", resume), HasSubstr("the run was started with another seed"));
  resume.overrides = {"steps=2"};
  EXPECT_EQ(refusal(folder_ / "run", resume), "no error");
}

}  // namespace
}  // namespace tandem::api
