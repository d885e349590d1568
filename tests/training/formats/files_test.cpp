// The file layer: durable writes, the hook before every operation, hashes, errors.
#include "engine/formats/files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using testing::TemporaryFolder;

TEST(Sha256, MatchesPublishedDigests) {
  EXPECT_EQ(sha256("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  EXPECT_EQ(sha256(million.data(), million.size()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameDigestAsTheWhole) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>(i * 7);
  for (const std::size_t piece : {1, 3, 55, 56, 63, 64, 65, 127, 499}) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      hash.update(text.data() + at, std::min(piece, text.size() - at));
    }
    EXPECT_EQ(hash.finish(), sha256(text.data(), text.size())) << piece;
  }
}

TEST(Files, WritesReadsAppendsAndCuts) {
  const TemporaryFolder folder;
  make_directories(folder / "a/b/c");
  EXPECT_TRUE(is_directory(folder / "a/b/c"));
  const std::string path = folder / "a/b/c/text";
  const WrittenFile written = write_file(path, "hello");
  EXPECT_EQ(written.bytes, 5u);
  EXPECT_EQ(hash_file(path).sha256, written.sha256);
  {
    OutputFile more(path, OutputFile::Mode::append);
    more.write(" world");
    more.close();
  }
  EXPECT_EQ(read_file(path), "hello world");
  truncate_file(path, 4);
  EXPECT_EQ(read_file(path), "hell");
  replace_file(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(list_directory(folder / "a/b/c"), std::vector<std::string>{"text"});
  rename_path(folder / "a/b", folder / "d");
  remove_all(folder / "d");
  remove_all(folder / "d");
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"a"});
}

TEST(Files, ErrorsNameThePathAndTheReason) {
  const TemporaryFolder folder;
  try {
    OutputFile file(folder / "missing/file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    EXPECT_EQ(error.diagnostics()[0].file, folder / "missing/file");
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos);
  }
  EXPECT_THROW(read_file(folder.path()), Error);
  EXPECT_THROW(make_directory(folder.path()), Error);
  write_file(folder / "big", std::string(100, 'x'));
  EXPECT_THROW(read_file(folder / "big", 99), Error);
}

TEST(Files, TheHookSeesEveryOperationOfADurableWrite) {
  const TemporaryFolder folder;
  std::vector<std::string> seen;
  set_file_hook(
      [&](std::string_view operation, std::string_view) { seen.emplace_back(operation); });
  replace_file(folder / "x", "content");
  set_file_hook({});
  EXPECT_EQ(seen, (std::vector<std::string>{"create", "write", "sync", "close", "rename",
                                            "sync_directory"}));
}

// Killed before any operation, a replaced file holds the old or the new content, whole.
TEST(Files, AReplacedFileSurvivesAKillAtEveryOperation) {
  const TemporaryFolder folder;
  const std::string path = folder / "state";
  int survived = 0;
  for (int kill_at = 1; survived == 0 && kill_at < 20; ++kill_at) {
    write_file(path, "old");
    const pid_t child = ::fork();
    if (child == 0) {
      int left = kill_at;
      set_file_hook([&](std::string_view, std::string_view) {
        if (--left == 0) ::kill(::getpid(), SIGKILL);
      });
      replace_file(path, "new content");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    survived = WIFEXITED(status);
    const std::string content = read_file(path);
    EXPECT_TRUE(content == "old" || content == "new content") << kill_at << ": " << content;
    EXPECT_TRUE(!survived || content == "new content");
  }
  EXPECT_EQ(survived, 1);
}

TEST(FilesDeathTest, TheEnvironmentKillsAtAnOperation) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryFolder folder;
  EXPECT_EXIT(
      {
        ::setenv("TANDEM_KILL_AT_FILE_OPERATION", "2", 1);
        write_file(folder / "x", "never complete");
      },
      ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace tandem
