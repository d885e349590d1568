// Output files of commands: existing files that are something else are kept.
#include "api/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/formats/files.h"
#include "include/tandem/error.h"
#include "tests/harness/failing_files.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::expect_nothing_left;
using tandem::testing::files_in;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class OutputFile : public ::testing::Test {
 protected:
  std::string path(const char* name) const { return folder_ / name; }
  std::string text_of(const std::string& file) const { return read_file(file, 1000); }
  std::string refusal(const std::string& file, std::string_view mark) {
    try {
      write_output(file, "new", "--trace", mark);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "";
  }
  testing::TemporaryFolder folder_;
};

TEST_F(OutputFile, OnlyItsOwnKindIsReplaced) {
  write_output(path("new"), "traceEvents 1", "--trace", "traceEvents");
  write_output(path("new"), "traceEvents 2", "--trace", "traceEvents");
  EXPECT_EQ(text_of(path("new")), "traceEvents 2");
  std::ofstream(path("train.toml")) << "model = \"m.onnx\"\n";
  EXPECT_THAT(refusal(path("train.toml"), "traceEvents"),
              AllOf(HasSubstr("--trace"), HasSubstr("another file of this name")));
  EXPECT_EQ(text_of(path("train.toml")), "model = \"m.onnx\"\n");
  EXPECT_THAT(refusal(path("new"), ""), HasSubstr("another file of this name"));
  EXPECT_THAT(refusal(folder_ / "", "traceEvents"), HasSubstr("folder"));
  EXPECT_THAT(refusal("", "traceEvents"), HasSubstr("not a file name"));
}

TEST_F(OutputFile, LinksAndPermissionsStay) {
  std::ofstream(path("real")) << "mark";
  fs::permissions(path("real"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", path("link"));
  write_output(path("link"), "mark 2", "--to", "mark");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text_of(path("real")), "mark 2");
  EXPECT_EQ(fs::status(path("real")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("later", path("dangling"));
  write_output(path("dangling"), "mark", "--to", "mark");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
  EXPECT_EQ(text_of(path("later")), "mark");
}

TEST_F(OutputFile, NeighboursStayAndFailuresLeaveNothing) {
  write_file(path("policy.toml"), "policy = 1\n");
  for (const char* name : {"policy.toml.new", "trace.new"}) write_file(path(name), "the user's");
  EXPECT_GE(expect_nothing_left(folder_ / "",
                                [&] { write_output(path("trace"), "mark", "--trace", "mark"); }),
            4);  // write, sync, close, rename
  EXPECT_GE(
      expect_nothing_left(folder_ / "",
                          [&] { rewrite_file(path("policy.toml"), "policy = 1\nrules = []\n"); }),
      4);
  EXPECT_THAT(files_in(folder_ / ""),
              ElementsAre(Pair("policy.toml", "policy = 1\nrules = []\n"),
                          Pair("policy.toml.new", "the user's"), Pair("trace", "mark"),
                          Pair("trace.new", "the user's")));
}

TEST_F(OutputFile, AProtectedFileIsRefused) {
  write_file(path("policy.toml"), "policy = 1\n");
  fs::permissions(path("policy.toml"), fs::perms::owner_read);
  EXPECT_THAT(refusal(path("policy.toml"), "policy"), HasSubstr("must not be written to"));
  EXPECT_THAT(files_in(folder_ / ""), ElementsAre(Pair("policy.toml", "policy = 1\n")));
}

TEST_F(OutputFile, DevicesAreWrittenToNotReplaced) {
  write_output("/dev/null", "anything", "--trace", "traceEvents");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(refusal("/dev/full", "traceEvents"), HasSubstr("cannot be written"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string named =
      "/proc/self/fd/" + std::to_string(ends[1]);  // as /dev/stdout leads to it
  check_output(named, "--to", "");
  write_output(named, "piped", "--to", "");
  std::string read_back(5, ' ');
  EXPECT_EQ(read(ends[0], read_back.data(), read_back.size()), 5);
  EXPECT_EQ(read_back, "piped");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace tandem::api
