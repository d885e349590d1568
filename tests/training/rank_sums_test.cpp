// Training graphs of several ranks, which are threads here: a table of rows, dense layers, norms,
// micro-batches and shares that differ by a sample. One process on the whole of each micro-batch is
// the reference.
#include "engine/train/graph/rank_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/training/ranks/graph_training.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t table_rows = 400, table_columns = 3, table_fields = 4, dense_outputs = 2;
constexpr int summed_steps = 4;

Graph forward_graph(const OperatorSet& operators, std::int64_t samples) {
  GraphBuilder b(operators);
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    return b.state(sine_parameter(name, shape));
  };
  const ValueId ids = b.input("ids", {DType::int64, {samples, table_fields}});
  b.set_scope({"table", Phase::forward, {}});
  const ValueId looked_up =
      b.add_node("Gather", {parameter("table.weight", {table_rows, table_columns}), ids},
                 {{"axis", std::int64_t{0}}});
  b.set_scope({"dense", Phase::forward, {}});
  const ValueId flat = b.reshape(looked_up, {samples, table_fields * table_columns});
  const ValueId product =
      b.matmul(flat, parameter("dense.weight", {table_fields * table_columns, dense_outputs}));
  const ValueId y = b.add(product, parameter("dense.bias", {dense_outputs}));
  b.output("y", y);
  return b.finish();
}

struct Case {
  std::vector<std::string> keys;
  std::int64_t batch = 12, micro_batch = 12;
  int device = 0;
};

GraphTraining summed_training(const Case& of) {
  return {.keys = of.keys,
          .batch = of.batch,
          .micro_batch = of.micro_batch,
          .outputs = dense_outputs,
          .device = of.device,
          .steps = summed_steps,
          .forward = forward_graph,
          .feed = [](const std::string&, std::int64_t first, std::int64_t samples, void* slot) {
            for (std::int64_t e = 0; e < samples * table_fields; ++e)
              static_cast<std::int64_t*>(slot)[e] =
                  (first * table_fields + e) * 7 % 11;  // many twice
          }};
}

void expect_as_alone(const Case& of, std::initializer_list<int> counts) {
  const GraphTraining training = summed_training(of);
  const TrainedGraph alone = train_graph(training);
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const std::vector<TrainedGraph> all = train_graph_on(ranks, training);
    for (const TrainedGraph& one : all) {
      EXPECT_EQ(one.stop, 1);
      EXPECT_EQ(one.losses, all[0].losses);
      EXPECT_NEAR(one.norm, alone.norm, 1e-6 * std::max(1.0f, alone.norm));
      for (int step = 0; step < summed_steps; ++step)
        EXPECT_NEAR(one.losses[step], alone.losses[step], 1e-6) << "step " << step + 1;
      for (const auto& [name, expected] : alone.states) {
        ASSERT_TRUE(one.states.contains(name)) << name;
        const HostTensor& value = one.states.at(name);
        EXPECT_EQ(std::memcmp(value.data(), all[0].states.at(name).data(), value.bytes()), 0)
            << name;
        for (std::int64_t i = 0; i < expected.type().elements(); ++i)
          ASSERT_NEAR(value.number(i), expected.number(i), 1e-6) << name << " " << i;
      }
    }
  }
}

const std::vector<std::string> momentum{"optimizer.kind=sgd", "optimizer.momentum=0.9"};
const std::vector<std::string> lazy{"optimizer.kind=sgd",
                                    "optimizer.groups=[{at=\"table:weight\", kind=\"lazy_adam\"}]"};

TEST(RankSums, DenseGradients) {
  expect_as_alone({.keys = momentum}, {2, 4, 5});
  expect_as_alone({.keys = momentum, .device = 1}, {2, 3});
}

TEST(RankSums, RowsOfTables) {
  expect_as_alone({.keys = lazy}, {2, 4, 5});
  expect_as_alone({.keys = lazy, .device = 1}, {2, 3});
}

TEST(RankSums, NormsAreOfAllGradients) {
  std::vector<std::string> keys = lazy;
  keys.push_back("optimizer.clip_norm=0.01");
  expect_as_alone({.keys = keys}, {2, 5});
  keys = momentum;
  keys.push_back("optimizer.clip_norm=0.01");
  expect_as_alone({.keys = keys}, {2, 5});
}

TEST(RankSums, MicroBatches) {
  for (const std::vector<std::string>& keys : {momentum, lazy}) {
    expect_as_alone({.keys = keys, .micro_batch = 4}, {2, 3});
    expect_as_alone({.keys = keys, .micro_batch = 4, .device = 1}, {3});
  }
}

// Ids are gathered as if each rank had the largest share; ids whose number does not follow the
// samples cannot be.
TEST(RankSums, IdsThatAreNoneOfASampleAreRefused) {
  const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  const ValueId ids = g.input("ids", {DType::int64, {7}});
  RankSums even(g, {2, 3, 3}), uneven(g, {2, 3, 4});
  const RowGradient gradient{{ids}, {}, {1}, {ValueId{}}};
  EXPECT_EQ(even.gathered_ids(gradient), 14);
  try {
    uneven.gathered_ids(gradient);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("drop_last"));
  }
}

}  // namespace
}  // namespace tandem::testing
