// The parts that ranks keep of a whole: each element is in one of them, at its place.
#include "engine/graph/shard_conversion.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tandem {
namespace {

HostTensor counted(Shape shape) {
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), 1.0f);
  return tensor;
}

// Element i of the whole, by the definitions: row r is row r / ranks of rank r % ranks; elements
// are cut into equal pieces.
struct Place {
  int rank;
  std::int64_t element;
};
Place place_of(const StateShard& shard, std::int64_t i) {
  if (shard.kind == ShardKind::elements) {
    const std::int64_t share = (shard.whole.elements() + shard.ranks - 1) / shard.ranks;
    return {static_cast<int>(i / share), i % share};
  }
  const std::int64_t columns = shard.whole.elements() / shard.whole.shape[0];
  const std::int64_t row = i / columns;
  return {static_cast<int>(row % shard.ranks), row / shard.ranks * columns + i % columns};
}

TEST(ShardParts, HaveEveryElementOnce) {
  for (const Shape& shape : {Shape{7, 3}, Shape{8}, Shape{2, 2, 2}, Shape{1, 5}, Shape{9, 1}}) {
    const HostTensor whole = counted(shape);
    for (const ShardKind kind : {ShardKind::rows, ShardKind::elements}) {
      for (const int ranks : {1, 2, 3, 5, 12}) {
        std::int64_t filled = 0, padding = 0;
        std::vector<HostTensor> parts;
        for (int rank = 0; rank < ranks; ++rank) {
          const StateShard shard{kind, whole.type(), rank, ranks};
          parts.push_back(part_of(whole, shard));
          EXPECT_EQ(parts.back().type(), shard.part());
          EXPECT_EQ(parts.back().type(), parts[0].type());
          const std::int64_t elements =
              filled_rows(shard) * static_cast<std::int64_t>(part_row_bytes(shard) / 4);
          filled += elements;
          for (std::int64_t i = elements; i < parts.back().type().elements(); ++i, ++padding)
            EXPECT_EQ(parts.back().number(i), 0);
        }
        EXPECT_EQ(filled, whole.type().elements());
        for (std::int64_t i = 0; i < whole.type().elements(); ++i) {
          const Place place = place_of({kind, whole.type(), 0, ranks}, i);
          ASSERT_EQ(parts[static_cast<std::size_t>(place.rank)].number(place.element),
                    whole.number(i))
              << to_string(whole.type()) << " over " << ranks;
        }
      }
    }
  }
}

// Blocks of neighbouring rows or columns: coordinate c is coordinate c % share of rank c / share.
TEST(ShardParts, BlocksOfRowsAndOfColumns) {
  for (const Shape& shape : {Shape{7, 3}, Shape{8, 1}, Shape{2, 5}, Shape{1, 6}}) {
    const HostTensor whole = counted(shape);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      for (const int ranks : {1, 2, 3, 5, 12}) {
        SCOPED_TRACE(to_string(whole.type()) + " along " + std::to_string(axis) + " over " +
                     std::to_string(ranks));
        const std::int64_t share = (shape[axis] + ranks - 1) / ranks;
        std::int64_t behind = 1;
        for (std::size_t i = axis + 1; i < shape.size(); ++i) behind *= shape[i];
        double sum = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const StateShard shard{axis == 0 ? ShardKind::row_blocks : ShardKind::column_blocks,
                                 whole.type(), rank, ranks};
          const HostTensor part = part_of(whole, shard);
          ASSERT_EQ(part.type(), shard.part());
          ASSERT_EQ(part.shape()[axis], share);
          for (std::int64_t i = 0; i < part.type().elements(); ++i) {
            const std::int64_t inner = i % behind, at = i / behind % share,
                               outer = i / behind / share;
            const std::int64_t coordinate = rank * share + at;
            const double expected =
                coordinate < shape[axis]
                    ? whole.number((outer * shape[axis] + coordinate) * behind + inner)
                    : 0;
            ASSERT_EQ(part.number(i), expected) << "rank " << rank << ", " << i;
            sum += part.number(i);
          }
        }
        const auto count = static_cast<double>(whole.type().elements());
        EXPECT_EQ(sum, count * (count + 1) / 2);
      }
    }
  }
}

TEST(ShardParts, AWholeTableIsWithItsOwner) {
  const HostTensor whole = counted({5, 2});
  for (int rank = 0; rank < 3; ++rank) {
    const StateShard shard{ShardKind::table, whole.type(), rank, 3, 1};
    const HostTensor part = part_of(whole, shard);
    ASSERT_EQ(part.type(), shard.part());
    ASSERT_EQ(part.shape(), rank == 1 ? Shape({5, 2}) : Shape({1, 2}));
    EXPECT_EQ(filled_rows(shard), rank == 1 ? 5 : 0);
    EXPECT_EQ(part_row_bytes(shard), 8u);
    for (std::int64_t i = 0; i < part.type().elements(); ++i)
      EXPECT_EQ(part.number(i), rank == 1 ? whole.number(i) : 0) << rank << " " << i;
  }
  EXPECT_EQ(row_of_whole({ShardKind::table, whole.type(), 1, 3, 1}, 4), 4);
  float rows[4];
  copy_part({ShardKind::table, whole.type(), 1, 3, 1}, whole.data(), 3, 2, rows);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(rows[i], static_cast<float>(7 + i));
}

TEST(ShardParts, RowsKnowTheirPlaceInTheWhole) {
  const TensorType whole{DType::float32, {7, 3}};
  EXPECT_EQ(row_of_whole({ShardKind::rows, whole, 2, 3}, 1), 5);
  EXPECT_EQ(row_of_whole({ShardKind::row_blocks, whole, 2, 3}, 0), 6);
  EXPECT_EQ(row_of_whole({ShardKind::column_blocks, whole, 2, 3}, 4), 4);
  EXPECT_EQ(filled_rows({ShardKind::row_blocks, whole, 2, 3}), 1);
  EXPECT_EQ(filled_rows({ShardKind::column_blocks, whole, 2, 3}), 7);
}

TEST(ShardParts, AStateBecomesItsPart) {
  State state;
  state.start = counted({5, 2});
  State zeros = state;
  zeros.starts_at_zero = true;
  keep_part(state, ShardKind::rows, 1, 2);
  keep_part(zeros, ShardKind::rows, 1, 2);
  EXPECT_EQ(state.shard->whole, (TensorType{DType::float32, {5, 2}}));
  EXPECT_EQ(state.start.type(), (TensorType{DType::float32, {3, 2}}));
  EXPECT_EQ(zeros.start.type(), state.start.type());
  const std::vector<float> expected{3, 4, 7, 8, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(state.start.as<float>()[i], expected[i]);
}

}  // namespace
}  // namespace tandem
