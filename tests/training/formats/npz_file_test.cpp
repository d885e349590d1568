// Single arrays of .npz archives: what is read, and sizes that do not agree.
#include "engine/formats/arrays/npz_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/packed_files.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpzFileTest : public ::testing::Test {
 protected:
  NpzFile open(const std::vector<ZipMember>& members) {
    write_file(path_, zip_archive(members));
    return NpzFile(path_);
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.npz";
};

const std::string three = npy_start("<f8", "(3,)");
std::string values(std::vector<double> of) {
  return {reinterpret_cast<const char*>(of.data()), of.size() * sizeof(double)};
}

TEST_F(NpzFileTest, ReadsOneArrayInTheTypeThatIsAsked) {
  const std::string content = three + values({1, 2.5, -3});
  const NpzFile file = open({stored("x.npy", content), packed("y.npy", content)});
  EXPECT_THAT(file.names(), ElementsAre("x", "y"));
  EXPECT_FALSE(file.has("x.npy"));
  for (const std::string& name : file.names()) {
    EXPECT_EQ(file.type(name), (TensorType{DType::float64, {3}}));
    EXPECT_TRUE(
        same_bytes(file.read(name, DType::float32), HostTensor::from<float>({3}, {1, 2.5f, -3})));
    EXPECT_TRUE(
        same_bytes(file.read(name, DType::float64), HostTensor::from<double>({3}, {1, 2.5, -3})));
  }
}

TEST_F(NpzFileTest, ConvertsColumnsAndByteOrderOnTheWay) {
  const std::string header =
      npy_start("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }");
  const NpzFile file =
      open({packed("x.npy", header + std::string("\0\1\0\2\0\3\0\4\0\5\xff\xfa", 12))});
  EXPECT_TRUE(same_bytes(file.read("x", DType::float32),
                         HostTensor::from<float>({2, 3}, {1, 3, 5, 2, 4, -6})));
}

// More than a piece of them, with three axes.
TEST_F(NpzFileTest, LongArraysOfColumns) {
  constexpr std::int64_t rows = 300, columns = 40, depth = 50;
  std::vector<std::int32_t> by_column, by_row;
  for (std::int32_t k = 0; k < depth; ++k) {
    for (std::int32_t j = 0; j < columns; ++j) {
      for (std::int32_t i = 0; i < rows; ++i) by_column.push_back(i * 10000 + j * 100 + k);
    }
  }
  for (std::int32_t i = 0; i < rows; ++i) {
    for (std::int32_t j = 0; j < columns; ++j) {
      for (std::int32_t k = 0; k < depth; ++k) by_row.push_back(i * 10000 + j * 100 + k);
    }
  }
  const std::string header =
      npy_start("{'descr': '<i4', 'fortran_order': True, 'shape': (300, 40, 50), }");
  const std::string content(reinterpret_cast<const char*>(by_column.data()), 4 * by_column.size());
  const NpzFile file = open({stored("x.npy", header + content)});
  EXPECT_TRUE(same_bytes(file.read("x", DType::int32),
                         HostTensor::from<std::int32_t>({rows, columns, depth}, by_row)));
}

TEST_F(NpzFileTest, WhatNobodyAsksForMayBeBroken) {
  ZipMember wrong_crc = packed("crc.npy", three + values({1, 2, 3}));
  ++wrong_crc.crc;
  ZipMember bzip2 = stored("bzip2.npy", "x");
  bzip2.method = 12;
  const NpzFile file = open({stored("text", "hello"), stored("x.npy", three + values({1, 2, 3})),
                             wrong_crc, bzip2, bomb("bomb.npy")});
  EXPECT_TRUE(same_bytes(file.read({"x"})[0].tensor, HostTensor::from<double>({3}, {1, 2, 3})));
  const auto error_with = [&](const std::string& name) {
    return error_of([&] { file.read({name}); });
  };
  EXPECT_THAT(error_with("text"), AllOf(HasSubstr("a.npz: text: not a .npy array")));
  EXPECT_THAT(error_with("crc"), AllOf(HasSubstr("a.npz: crc"), HasSubstr("checksum")));
  EXPECT_THAT(error_with("bzip2"), AllOf(HasSubstr("a.npz: bzip2"), HasSubstr("unknown way")));
}

TEST_F(NpzFileTest, SizesHaveToAgree) {
  const std::string content = three + values({1, 2, 3});
  const auto error_with = [&](ZipMember member) {
    const NpzFile file = open({member});
    return error_of([&] { file.read({"x"}); });
  };
  // The directory says less than the header, more than it, and as much while there is more.
  ZipMember member = packed("x.npy", content);
  member.bytes -= 8;
  EXPECT_THAT(error_with(member), AllOf(HasSubstr("a.npz: x: "), HasSubstr("the array is cut off"),
                                        HasSubstr("expected 24 bytes"), HasSubstr("got 16")));
  member.bytes += 16;
  EXPECT_THAT(error_with(member), HasSubstr("bytes follow the array"));
  member = packed("x.npy", content + "more");
  member.bytes -= 4;
  EXPECT_THAT(error_with(member),
              HasSubstr("unpacks to more than the " + std::to_string(content.size()) + " bytes"));
  member = packed("x.npy", content.substr(0, content.size() - 4));
  member.bytes += 4;
  EXPECT_THAT(error_with(member), HasSubstr("the array is cut off"));
  member = stored("x.npy", content);
  member.bytes += 8;
  EXPECT_THAT(error_with(member), HasSubstr("its size is impossible"));
  // 100 times more than the packed bytes can be.
  const std::string start = npy_start("<f8", "(10000000,)");
  member = packed("x.npy", start);
  member.bytes += 80'000'000;
  EXPECT_THAT(error_with(member), HasSubstr("its size is impossible"));
}

TEST_F(NpzFileTest, NamesAreGivenOnce) {
  const ZipMember x = stored("x.npy", three + values({1, 2, 3}));
  EXPECT_THAT(error_of([&] { open({x, x}); }), AllOf(HasSubstr("a.npz: x: "), HasSubstr("twice")));
}

}  // namespace
}  // namespace tandem
