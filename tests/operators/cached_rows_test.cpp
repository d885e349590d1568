// Splitting ids between a table and its cache, on every kernel: each id goes to one of them, with
// the position of its row. Also the sum of the rows looked up in both.
#include <limits>
#include <random>

#include "engine/operators/tables/split_ids.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t no_row = absent_id<std::int64_t>;

struct Split {
  std::vector<std::int64_t> cold, hot;
};

HostTensor list_of_ids(DType type, const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> own = values;
  for (std::int64_t& value : own) {
    if (value == no_row) value = absent_id_of(type);
  }
  return HostTensor::from<std::int64_t>({static_cast<std::int64_t>(own.size())}, own)
      .converted(type);
}

std::vector<std::int64_t> integers(const HostTensor& tensor) {
  std::vector<std::int64_t> all = tensor.integers();
  for (std::int64_t& value : all) {
    if (value == absent_id_of(tensor.dtype())) value = no_row;
  }
  return all;
}

/// Expects this split on all kernels and for both types of ids.
void expect_split(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& cached,
                  std::int64_t rows, const Split& wanted) {
  const CachedMarks marks(cached, rows);
  for (const DType type : {DType::int32, DType::int64}) {
    const std::vector<HostTensor> inputs{list_of_ids(type, ids), marks.marks, marks.ranks};
    const Graph graph = single_node("SplitIds", inputs, {{"rows", rows}});
    int kernels = 0;
    each_kernel(graph, [&](const Kernel& kernel) {
      const std::vector<HostTensor> outputs =
          run_node(kernel, graph, graph.nodes[0], inputs, RunOptions{});
      EXPECT_EQ(outputs[0].dtype(), type);
      EXPECT_EQ(outputs[1].dtype(), DType::int32);
      EXPECT_EQ(integers(outputs[0]), wanted.cold) << kernel.name;
      EXPECT_EQ(integers(outputs[1]), wanted.hot) << kernel.name;
      ++kernels;
    });
    EXPECT_GE(kernels, 2);
  }
}

TEST(SplitIds, EachGoesToOneOfThem) {
  expect_split({1, 0, 64, 69, -1, -6, 63, 1}, {1, 64, 69}, 70,
               {{no_row, 0, no_row, no_row, no_row, no_row, 63, no_row},
                {0, no_row, 1, 2, 2, 1, no_row, 0}});
}

// Both lookups read zeros for an absent id; ids outside the table go to it, which reports them.
TEST(SplitIds, WhatNamesNoRowGoesToTheTable) {
  expect_split({no_row, 70, -71, 69}, {0, 69}, 70,
               {{no_row, 70, -71, no_row}, {no_row, no_row, no_row, 1}});
}

TEST(SplitIds, NoRowAndEveryRow) {
  expect_split({3, 0}, {}, 5, {{3, 0}, {no_row, no_row}});
  expect_split({3, 0, -2}, {0, 1, 2, 3, 4}, 5, {{no_row, no_row, no_row}, {3, 0, 3}});
  expect_split({}, {2}, 5, {{}, {}});
}

TEST(SplitIds, ManyIds) {
  constexpr std::int64_t rows = 5000;
  std::mt19937 random(1);
  std::vector<std::int64_t> cached, ids, place(rows, no_row);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (random() % 3 != 0) continue;
    place[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(cached.size());
    cached.push_back(row);
  }
  Split wanted;
  for (int i = 0; i < 20000; ++i) {
    const auto row = static_cast<std::int64_t>(random() % rows);
    const std::int64_t hot = place[static_cast<std::size_t>(row)];
    ids.push_back(row);
    wanted.hot.push_back(hot);
    wanted.cold.push_back(hot == no_row ? row : no_row);
  }
  expect_split(ids, cached, rows, wanted);
}

// Where the cache has no row, the sum is the table's row, whatever the cache holds.
TEST(GatherAdd, AddsWhereThereIsARow) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const DType type : {DType::int32, DType::int64}) {
    for (const std::int64_t columns : {1, 7, 80}) {
      HostTensor base(TensorType{DType::float32, {3, columns}}),
          x(TensorType{DType::float32, {2, columns}});
      for (std::int64_t c = 0; c < 3 * columns; ++c) base.as<float>()[c] = static_cast<float>(c);
      for (std::int64_t c = 0; c < columns; ++c) {
        x.as<float>()[c] = infinite;
        x.as<float>()[columns + c] = 0.5f;
      }
      const std::vector<HostTensor> inputs{base, x, list_of_ids(type, {no_row, 1, no_row})};
      const Graph graph = single_node("GatherAdd", inputs, {});
      each_kernel(graph, [&](const Kernel& kernel) {
        const HostTensor y = run_node(kernel, graph, graph.nodes[0], inputs)[0];
        for (std::int64_t i = 0; i < 3 * columns; ++i)
          EXPECT_EQ(y.number(i), base.number(i) + (i / columns == 1 ? 0.5 : 0));
      });
    }
  }
}

}  // namespace
}  // namespace tandem::testing
