// data.kind = "tokens": windows and their targets, documents, padding, and files that are not lists
// of ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "engine/data/data_source.h"
#include "engine/data/tokens/token_samples.h"
#include "engine/formats/files.h"
#include "tests/harness/peak_memory.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::data_config;
using testing::error_of;
using ::testing::HasSubstr;
using testing::ids_of;
using testing::TemporaryFolder;
using Ids = std::vector<std::int64_t>;

class TokenData : public ::testing::Test {
 protected:
  template <class Element>
  void put(const std::string& name, const Ids& ids, const std::string& before = "") {
    std::string bytes = before;
    for (const std::int64_t id : ids) {
      for (std::size_t i = 0; i < sizeof(Element); ++i)
        bytes += static_cast<char>(id >> (8 * i) & 0xff);
    }
    write_file(folder_ / name, bytes);
  }
  DataConfig config(const std::string& keys, const std::string& files = "'a.bin'",
                    const std::string& more = "") {
    return data_config(folder_,
                       "kind = 'tokens'\n" + keys + "\ntrain = { files = " + files + " }\n" + more);
  }
  TemporaryFolder folder_;
};

TEST_F(TokenData, TargetsToIgnoreAreInRange) {
  put<std::uint16_t>("a.bin", {1, 2, 3, 4, 5, 9, 9, 6, 9, 7, 8});
  const DataSets sets =
      open_data(config("length = 3\ndocument_end = 9\ncross_documents = false\npad = 20"));
  const std::int64_t ignored = ignored_target;
  sets.train->check_range(sets.train->find_field("targets"), 10, &ignored);
  EXPECT_THAT(error_of([&] { sets.train->check_range(0, 20, nullptr); }), HasSubstr("got 20"));
}

TEST_F(TokenData, NumbersOfWindowsAreThoseThatTargetsNeed) {
  const TokenWindows windows{.length = 4, .stride = 3};
  // Without borders: the last window has all of its targets.
  const Ids stream{0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3};
  // A document: windows at 0, 3, 6, ... until each target is in one.
  const Ids document{0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3};
  for (std::size_t tokens = 0; tokens < stream.size(); ++tokens) {
    EXPECT_EQ(windows_of_stream(static_cast<std::int64_t>(tokens), windows), stream[tokens])
        << tokens;
    EXPECT_EQ(windows_of_document(static_cast<std::int64_t>(tokens), windows), document[tokens])
        << tokens;
  }
}

TEST_F(TokenData, StridesBeyondTheLengthLeaveTokensOut) {
  const TokenWindows windows{.length = 2, .stride = 5};
  // Windows at 0, 5 and 10, as long as there is a target for their first token.
  const Ids document{0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3};
  for (std::size_t tokens = 0; tokens < document.size(); ++tokens) {
    EXPECT_EQ(windows_of_document(static_cast<std::int64_t>(tokens), windows), document[tokens])
        << tokens;
  }
}

TEST_F(TokenData, DocumentsAcrossPiecesOfTheFileAreFound) {
  // Longer than the 2^18 tokens that are read at a time; each document has 1000 tokens.
  Ids ids(3'000'000, 1);
  for (std::size_t i = 999; i < ids.size(); i += 1000) ids[i] = 2;
  put<std::uint16_t>("a.bin", ids);
  const DataSets sets =
      open_data(config("length = 600\ndocument_end = 2\ncross_documents = false"));
  ASSERT_EQ(sets.train->samples(), 6000);
  for (const std::int64_t sample : {1, 2097, 5999}) {
    const Ids targets = ids_of(*sets.train, "targets", sample);
    // 999 targets of a document: 600 in the first window, 399 in the second.
    const auto ends = std::count(targets.begin(), targets.end(), 2);
    const auto ignored = std::count(targets.begin(), targets.end(), ignored_target);
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(ignored, 201);
  }
}

TEST_F(TokenData, AFileOfAnySizeTakesLittleMemory) {
  if (!testing::counts_allocations()) GTEST_SKIP() << "sanitizers take memory of their own";
  write_file(folder_ / "a.bin", "");
  std::filesystem::resize_file(folder_ / "a.bin", std::size_t{256} << 20);
  const DataConfig data = config("length = 1024");
  const std::size_t peak = testing::peak_memory_of([&] {
    const DataSets sets = open_data(data);
    if (ids_of(*sets.train, "tokens", sets.train->samples() - 1) != Ids(1024, 0)) std::abort();
  });
  EXPECT_LT(peak, std::size_t{16} << 20);
}

TEST_F(TokenData, AFileThatIsCutWhileItIsReadIsNamed) {
  put<std::uint16_t>("a.bin", {0, 1, 2, 3, 4, 5});
  const DataSets sets = open_data(config("length = 2"));
  truncate_file(folder_ / "a.bin", 6);
  EXPECT_THAT(error_of([&] { ids_of(*sets.train, "tokens", 1); }),
              AllOf(HasSubstr("a.bin"), HasSubstr("shorter")));
}

TEST_F(TokenData, AFractionIsHeldOut) {
  Ids ids(1001);
  std::iota(ids.begin(), ids.end(), 0);
  put<std::uint16_t>("a.bin", ids);
  const DataSets sets = open_data(config("length = 10", "'a.bin'", "eval = { fraction = 0.1 }\n"));
  EXPECT_EQ(sets.train->samples(), 90);
  EXPECT_EQ(sets.eval->samples(), 10);
}

}  // namespace
}  // namespace tandem
