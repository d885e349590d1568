// Tables in files of row ranges: each is a safetensors file, and together they are the table again.
#include "engine/formats/row_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

NamedTensor table_of(std::int64_t rows, std::int64_t columns) {
  HostTensor tensor(TensorType{DType::float32, {rows, columns}});
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), 0.0f);
  return {"deep.weight", tensor};
}

class RowShards : public ::testing::Test {
 protected:
  std::vector<RowShard> write(const TensorSource& source, std::uint64_t bytes) {
    const std::vector<RowShard> shards = row_shards(source, bytes, "model.table1");
    for (const RowShard& shard : shards) write_row_shard(folder_.path(), source, shard);
    return shards;
  }
  NamedTensor read(const std::vector<RowShard>& shards) {
    return read_row_shards(folder_.path(), "deep.weight", shards);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(RowShards, CoverAllRowsInWholePages) {
  for (const std::int64_t columns : {1, 3, 80, 1000}) {
    const NamedTensor table = table_of(100'003, columns);
    const TensorSource source = source_of(table);
    const std::vector<RowShard> shards = row_shards(source, source.type.bytes() / 3, "t");
    ASSERT_GE(shards.size(), 2u);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      EXPECT_EQ(shards[i].first, next);
      const auto bytes = static_cast<std::size_t>(shards[i].rows * columns) * 4;
      EXPECT_TRUE(bytes % 65536 == 0 || i + 1 == shards.size());
      next += shards[i].rows;
    }
    EXPECT_EQ(next, 100'003);
  }
  EXPECT_EQ(row_shards(source_of(table_of(4, 2)), 1 << 20, "t")[0].file,
            "t-00001-of-00001.safetensors");
}

TEST_F(RowShards, GiveTheTableBack) {
  const NamedTensor table = table_of(70'001, 7);
  const std::vector<RowShard> shards = write(source_of(table), 500'000);
  EXPECT_EQ(shards.size(), 3u);
  EXPECT_TRUE(testing::same_bytes(read(shards).tensor, table.tensor));
}

TEST_F(RowShards, ComeFromASourceInRanges) {
  const NamedTensor table = table_of(3'000'000, 4);  // several ranges a file
  std::int64_t most = 0;
  TensorSource source{table.name, table.tensor.type()};
  source.read = [&](std::int64_t first, std::int64_t rows, void* to) {
    most = std::max(most, rows);
    std::memcpy(to, static_cast<const char*>(table.tensor.data()) + 16 * first,
                static_cast<std::size_t>(16 * rows));
  };
  const std::vector<RowShard> shards = write(source, 20'000'000);
  EXPECT_TRUE(testing::same_bytes(read(shards).tensor, table.tensor));
  EXPECT_EQ(most, static_cast<std::int64_t>(source_range_bytes / 16));
}

TEST_F(RowShards, AreSafetensorsFilesOfTheirOwn) {
  const NamedTensor table = table_of(70'001, 7);
  const std::vector<RowShard> shards = write(source_of(table), 500'000);
  const SafetensorsFile second(folder_ / shards[1].file);
  ASSERT_EQ(second.tensors().size(), 1u);
  EXPECT_EQ(second.tensors()[0].name, "deep.weight");
  EXPECT_EQ(second.tensors()[0].tensor.shape(), (Shape{shards[1].rows, 7}));
  EXPECT_EQ(second.tensors()[0].tensor.as<float>()[0], static_cast<float>(shards[1].first * 7));
  EXPECT_EQ(second.metadata().at("first_row"), std::to_string(shards[1].first));
  EXPECT_EQ(second.metadata().at("rows"), "70001");
}

TEST_F(RowShards, ThatDoNotLieOnPagesAreCopied) {
  const NamedTensor table = table_of(10, 3);
  const TensorSource source = source_of(table);
  const std::vector<RowShard> shards{{"a", 0, 4}, {"b", 4, 6}};
  for (const RowShard& shard : shards) write_row_shard(folder_.path(), source, shard);
  EXPECT_TRUE(testing::same_bytes(read(shards).tensor, table.tensor));
}

TEST_F(RowShards, ThatDoNotFitTogetherAreNamed) {
  const NamedTensor table = table_of(70'001, 7);
  std::vector<RowShard> shards = write(source_of(table), 500'000);
  const auto text = [&](std::vector<RowShard> chosen) {
    return testing::error_text([&] { read(chosen); });
  };
  EXPECT_THAT(text({shards[0], shards[2]}), HasSubstr("rows are missing"));
  EXPECT_THAT(text({shards[0], shards[2]}), HasSubstr(shards[2].file));
  EXPECT_THAT(text({shards[0], shards[1]}), HasSubstr("rows are missing after it: expected 70001"));
  EXPECT_THAT(text({}), HasSubstr("no file holds rows"));
  shards[1].rows -= 1;
  EXPECT_THAT(text(shards), HasSubstr("rows of another type"));
  EXPECT_THAT(testing::error_text([&] { read_row_shards(folder_.path(), "wide", {shards[0]}); }),
              HasSubstr("does not hold only rows of this tensor"));
}

TEST_F(RowShards, ThatChangedPlacesAreNamed) {
  const NamedTensor table = table_of(70'001, 7);
  const std::vector<RowShard> shards = write(source_of(table), 500'000);
  ASSERT_EQ(shards[0].rows, shards[1].rows);
  std::filesystem::rename(folder_ / shards[0].file, folder_ / "other");
  std::filesystem::rename(folder_ / shards[1].file, folder_ / shards[0].file);
  std::filesystem::rename(folder_ / "other", folder_ / shards[1].file);
  EXPECT_THAT(
      testing::error_text([&] { read(shards); }),
      HasSubstr("the file holds other rows: expected rows from 0 on, of 70001, got rows from " +
                std::to_string(shards[1].first)));
}

}  // namespace
}  // namespace tandem
