// Files that must not be given to the loader: cut short, pipes, folders, broken links. Also which
// file the loader takes for a name.
#include "kernels/cuda/libraries/library_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "kernels/cuda/libraries/shared_library.h"
#include "tests/cuda/support/small_libraries.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string name = "libnumber.so.1";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class LibraryFile : public ::testing::Test {
 protected:
  std::string add(const std::string& folder) {
    fs::create_directories(folder_ / folder);
    return folder_ / folder;
  }
  /// A library that can be opened.
  std::string add_whole(const std::string& folder) {
    compile_library(add(folder) + "/" + name, "int number(void) { return 2; }");
    return folder_ / folder + "/" + name;
  }
  /// For each thing that is not a library, makes one in `folder`; returns their names.
  std::vector<std::string> add_broken() {
    const std::string whole = read(add_whole("whole"));
    write(add("short") + "/" + name, whole.substr(0, whole.size() / 2));
    write(add("text") + "/" + name, "hello");
    write(add("empty") + "/" + name, "");
    fs::create_directories(folder_ / "folder/" + name);
    EXPECT_EQ(mkfifo((add("pipe") + "/" + name).c_str(), 0600), 0);
    fs::create_symlink(folder_ / "pipe/" + name, add("link") + "/" + name);
    fs::create_symlink(name, add("loop") + "/" + name);
    return {"short", "text", "empty", "folder", "pipe", "link", "loop"};
  }
  TemporaryFolder folder_;
};

// A linker writes the section headers last.
TEST_F(LibraryFile, CutShortAnywhereIsSeen) {
  const std::string path = add_whole("a"), whole = read(path), part = folder_ / "part";
  EXPECT_EQ(cuda::file_problem(path), "");
  fs::create_symlink(path, folder_ / "link");
  EXPECT_EQ(cuda::file_problem(folder_ / "link"), "");
  for (std::size_t bytes = SELFMAG; bytes < whole.size(); bytes += bytes < 1024 ? 7 : 197) {
    write(part, whole.substr(0, bytes));
    ASSERT_THAT(cuda::file_problem(part), StartsWith("it was cut short: ")) << bytes;
    ASSERT_THAT(cuda::file_problem(part), EndsWith(" its " + std::to_string(bytes) + " bytes"));
  }
  write(part, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(cuda::file_problem(part), StartsWith("it was cut short: its list of sections"));
}

TEST_F(LibraryFile, WhatIsLoadedHasToBeThere) {
  std::string bytes = read(add_whole("a"));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::uint64_t end = 0;  // end of what is loaded
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  ASSERT_GT(end, sizeof header);
  header.e_shoff = 0;  // like a library without section headers
  std::memcpy(bytes.data(), &header, sizeof header);
  const std::string path = folder_ / "part";
  write(path, bytes.substr(0, end));
  EXPECT_EQ(cuda::file_problem(path), "");
  write(path, bytes.substr(0, end - 1));
  EXPECT_THAT(cuda::file_problem(path), StartsWith("it was cut short: a segment goes beyond"));
}

TEST_F(LibraryFile, OffsetsBeyondAllFilesAreSeen) {
  const std::string path = add_whole("a"), whole = read(path);
  const auto problem = [&](std::size_t place, std::uint64_t value) {
    std::string changed = whole;
    std::memcpy(changed.data() + place, &value, sizeof value);
    write(path, changed);
    return cuda::file_problem(path);
  };
  ASSERT_EQ(sizeof(void*), 8u);
  EXPECT_THAT(problem(offsetof(Elf64_Ehdr, e_phoff), ~std::uint64_t{0}), HasSubstr("segments"));
  EXPECT_THAT(problem(offsetof(Elf64_Ehdr, e_shoff), ~std::uint64_t{15}), HasSubstr("sections"));
  EXPECT_EQ(problem(offsetof(Elf64_Ehdr, e_shoff), 0), "") << "sections are not needed";
}

TEST_F(LibraryFile, OtherThingsAreNamed) {
  add_broken();
  const auto problem = [&](const std::string& folder) {
    return cuda::file_problem(folder_ / folder + "/" + name);
  };
  EXPECT_EQ(problem("text"), "it is no shared library");
  EXPECT_EQ(problem("empty"), "it is empty");
  EXPECT_EQ(problem("folder"), "it is a folder");
  EXPECT_EQ(problem("pipe"), "it is no regular file");
  EXPECT_EQ(problem("link"), "it is no regular file");
  EXPECT_NE(problem("loop"), "");
  EXPECT_NE(problem("none"), "");
}

TEST_F(LibraryFile, BrokenOnesAreNeverOpened) {
  const std::vector<std::string> broken = add_broken();
  const std::string good = folder_ / "whole";
  for (const std::string& kind : broken) {
    const std::string folder = folder_ / kind, path = folder + "/" + name;
    const cuda::SharedLibrary asked = cuda::open_library(name, {{folder}, false, {good}});
    EXPECT_EQ(asked.handle, nullptr) << kind;
    EXPECT_EQ(asked.refused, path);
    EXPECT_EQ(asked.problem, path + ": " + cuda::file_problem(path));
    EXPECT_THAT(cuda::other_files(name, {{folder}, false, {good}}, path),
                ElementsAre(good + "/" + name));
    EXPECT_THAT(cuda::other_files(name, {{good}, false, {folder}}, good + "/" + name), IsEmpty());
    const cuda::SharedLibrary passed = cuda::open_library(name, {{}, false, {folder, good}});
    EXPECT_EQ(passed.path, good + "/" + name) << kind;
    EXPECT_EQ(passed.refused, "");
    cuda::SharedLibrary beside;
    beside.path = folder + "/libother.so.1";
    EXPECT_THAT(cuda::open_part(name, beside),
                StartsWith("its part " + name + " cannot be opened: " + path + ": "))
        << kind;
  }
}

TEST_F(LibraryFile, FoldersThatAreNone) {
  const std::string whole = add_whole("a"), folder = folder_ / "a";
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(
      cuda::missing_folders({{folder, whole, folder_ / "none", folder_ / "loop"}, true, {}}),
      ElementsAre(whole, folder_ / "none", folder_ / "loop"));
}

TEST_F(LibraryFile, OfANameIsTheLoaders) {
  const cuda::SharedLibrary opened = cuda::open_library("libm.so.6", {{}, true, {}});
  ASSERT_NE(opened.handle, nullptr);
  EXPECT_TRUE(fs::equivalent(cuda::loader_file("libm.so.6"), opened.path));
  EXPECT_EQ(cuda::loader_file("libof_no_machine.so.1"), "");
}

// The loader reads LD_LIBRARY_PATH when the process starts, so the test starts itself again.
TEST_F(LibraryFile, OfANameIsSearchedInTheEnvironment) {
  if (std::getenv("TANDEM_TEST_AGAIN") != nullptr) {
    const cuda::SharedLibrary library = cuda::open_library(name, {{}, true, {}});
    std::printf("file=%s;opened=%s;\n", cuda::loader_file(name).c_str(), library.path.c_str());
    return;
  }
  const std::string program = fs::read_symlink("/proc/self/exe");
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  const auto said = [&](const std::string& folders) {
    const std::string command = "TANDEM_TEST_AGAIN=1 LD_LIBRARY_PATH='" + folders +
                                (before != nullptr ? std::string(":") + before : "") +
                                "' timeout 20 '" + program +
                                "' --gtest_filter=LibraryFile.OfANameIsSearchedInTheEnvironment";
    std::string text;
    FILE* const output = popen(command.c_str(), "r");
    for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) text += static_cast<char>(c);
    EXPECT_EQ(pclose(output), 0) << text;
    return text;
  };
  const std::vector<std::string> broken = add_broken();
  const std::string good = folder_ / "whole";
  EXPECT_THAT(said(add("nothing") + ":" + good),
              HasSubstr("file=" + good + "/" + name + ";opened=" + good + "/" + name + ";"));
  for (const std::string& kind : broken) {
    EXPECT_THAT(said(folder_ / kind + ":" + good),
                HasSubstr("file=" + (folder_ / kind) + "/" + name + ";opened=;"))
        << kind;
  }
}

}  // namespace
}  // namespace tandem::testing
