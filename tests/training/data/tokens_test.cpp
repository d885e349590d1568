// data.kind = "tokens": windows and their targets, documents, padding, and files that are not lists
// of ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "engine/formats/files.h"
#include "engine/training/data/data_source.h"
#include "engine/training/data/tokens/token_samples.h"
#include "tests/harness/peak_memory.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::data_config;
using ::testing::ElementsAre;
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

TEST_F(TokenData, WindowsFollowEachOtherAndTargetsAreOneAhead) {
  put<std::uint16_t>("a.bin", {0, 1, 2, 3, 4, 5, 6, 7, 8, 65535});
  const DataSets sets = open_data(config("length = 3"));
  ASSERT_EQ(sets.train->samples(), 3);
  EXPECT_THAT(ids_of(*sets.train, "tokens", 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(ids_of(*sets.train, "targets", 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids_of(*sets.train, "tokens", 2), ElementsAre(6, 7, 8));
  EXPECT_THAT(ids_of(*sets.train, "targets", 2), ElementsAre(7, 8, 65535));
  EXPECT_THAT(ids_of(*sets.train, "mask", 2), ElementsAre(1, 1, 1));
  EXPECT_EQ(sets.train->fields()[0].sample, (TensorType{DType::int64, {3}}));
}

TEST_F(TokenData, WindowsMayOverlapAndTargetsMayBeFurtherAhead) {
  put<std::uint32_t>("a.bin", {10, 11, 12, 13, 14, 15, 100000});
  const DataSets sets = open_data(config("element = 'uint32'\nlength = 3\nstride = 2\nshift = 2"));
  ASSERT_EQ(sets.train->samples(), 2);  // from 0 and 2; from 4 on there are not 5 tokens
  EXPECT_THAT(ids_of(*sets.train, "tokens", 1), ElementsAre(12, 13, 14));
  EXPECT_THAT(ids_of(*sets.train, "targets", 1), ElementsAre(14, 15, 100000));
}

TEST_F(TokenData, FilesFollowEachOtherAndWindowsStayInThem) {
  put<std::uint16_t>("a.bin", {0, 1, 2, 3, 4});
  put<std::uint16_t>("b.bin", {5, 6});  // shorter than a window
  put<std::uint16_t>("c.bin", {7, 8, 9});
  const DataSets sets = open_data(config("length = 2", "['a.bin', 'b.bin', 'c.bin']"));
  ASSERT_EQ(sets.train->samples(), 3);
  EXPECT_THAT(ids_of(*sets.train, "tokens", 1), ElementsAre(2, 3));
  EXPECT_THAT(ids_of(*sets.train, "tokens", 2), ElementsAre(7, 8));
  EXPECT_EQ(sets.train->describe(0, 1), folder_ / "a.bin:2");
  EXPECT_EQ(sets.train->describe(0, 2), folder_ / "c.bin:1");
}

TEST_F(TokenData, DocumentsHaveWindowsOfTheirOwnThatAreFilledUp) {
  // Documents: 1 2 3 4 5 9 | 9 | 6 9 | 7 8 (without an end). The lone 9 has no target.
  put<std::uint16_t>("a.bin", {1, 2, 3, 4, 5, 9, 9, 6, 9, 7, 8});
  const DataSets sets =
      open_data(config("length = 3\ndocument_end = 9\ncross_documents = false\npad = 20"));
  ASSERT_EQ(sets.train->samples(), 4);
  const std::vector<Ids> tokens{{1, 2, 3}, {4, 5, 9}, {6, 9, 20}, {7, 8, 20}};
  const std::vector<Ids> targets{{2, 3, 4}, {5, 9, -100}, {9, -100, -100}, {8, -100, -100}};
  const std::vector<Ids> masks{{1, 1, 1}, {1, 1, 0}, {1, 0, 0}, {1, 0, 0}};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto sample = static_cast<std::int64_t>(i);
    EXPECT_EQ(ids_of(*sets.train, "tokens", sample), tokens[i]) << i;
    EXPECT_EQ(ids_of(*sets.train, "targets", sample), targets[i]) << i;
    EXPECT_EQ(ids_of(*sets.train, "mask", sample), masks[i]) << i;
  }
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
  put<std::uint16_t>("a.bin", {1, 2, 3, 4, 9});
  const DataSets sets =
      open_data(config("length = 3\nstride = 100\ndocument_end = 9\ncross_documents = false"));
  ASSERT_EQ(sets.train->samples(), 1);
  EXPECT_THAT(ids_of(*sets.train, "targets", 0), ElementsAre(2, 3, 4));
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

TEST_F(TokenData, IdsBeyondTheVocabularyAreNamedWithFileAndOffset) {
  put<std::uint16_t>("a.bin", {0, 1, 50, 2, 60}, std::string(1024, '\x7f'));
  EXPECT_THAT(
      error_of([&] { open_data(config("length = 2\nvocabulary = 50\nheader_bytes = 1024")); }),
      AllOf(HasSubstr("a.bin"), HasSubstr("token 2, at byte 1028"), HasSubstr("0 to 49"),
            HasSubstr("got 50"), HasSubstr("token 4, at byte 1032")));
  EXPECT_EQ(open_data(config("length = 2\nvocabulary = 61\nheader_bytes = 1024")).train->samples(),
            2);
}

TEST_F(TokenData, FilesThatAreNoListsOfIdsAreRefused) {
  write_file(folder_ / "a.bin", "12345");
  EXPECT_THAT(error_of([&] { open_data(config("length = 2")); }),
              AllOf(HasSubstr("no list of token ids"), HasSubstr("got 5 bytes")));
  put<std::uint16_t>("a.bin", {1, 2});
  EXPECT_THAT(error_of([&] { open_data(config("length = 2")); }),
              AllOf(HasSubstr("no file is as long as one"), HasSubstr("expected 3 tokens"),
                    HasSubstr("got 2")));
  write_file(folder_ / "a.bin", "");
  EXPECT_THAT(error_of([&] { open_data(config("length = 2")); }), HasSubstr("got 0"));
  EXPECT_THAT(error_of([&] { open_data(config("length = 2\nheader_bytes = 4")); }),
              HasSubstr("no list of token ids"));
  EXPECT_THAT(error_of([&] { open_data(config("length = 2", "'b.bin'")); }),
              HasSubstr("no such file"));
}

TEST_F(TokenData, AFileThatIsCutWhileItIsReadIsNamed) {
  put<std::uint16_t>("a.bin", {0, 1, 2, 3, 4, 5});
  const DataSets sets = open_data(config("length = 2"));
  truncate_file(folder_ / "a.bin", 6);
  EXPECT_THAT(error_of([&] { ids_of(*sets.train, "tokens", 1); }),
              AllOf(HasSubstr("a.bin"), HasSubstr("shorter")));
}

TEST_F(TokenData, KeysAreChecked) {
  EXPECT_THAT(error_of([&] { config(""); }), HasSubstr("length"));
  EXPECT_THAT(error_of([&] { config("length = 2\ncross_documents = false"); }),
              HasSubstr("nothing says where documents end"));
  EXPECT_THAT(error_of([&] { config("length = 0"); }), HasSubstr("out of range"));
  EXPECT_THAT(error_of([&] { config("length = 2", "'a.bin'", "[data.fields]\nx = 'words'\n"); }),
              HasSubstr("no such array"));
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
