// Sums of looked-up rows of tables that are sharded by rows, where sums cross instead of rows.
#include "engine/train/sharding/shard_bags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/operators/collectives/collective.h"
#include "tests/training/ranks/sharded_tables.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t bag = 16;

/// What else looks up the deep table's rows: bags with weights of the model, or with trained
/// weights, for which rows cross; bags whose samples are the second axis; or single rows.
enum class Beside { nothing, weighted, trained_weights, bags_of_two, rows };

Graph bags_graph(const OperatorSet& operators, std::int64_t samples, Beside beside) {
  GraphBuilder b(operators);
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    return b.state(sine_parameter(name, shape));
  };
  const ValueId ids = b.input("ids", {DType::int64, {samples, bag}});
  const ValueId deep_table = parameter("deep.weight", {sharded_rows, 12});
  b.set_scope({"wide", Phase::forward, {}});
  const ValueId wide =
      b.add_node("EmbeddingBag", {parameter("wide.weight", {sharded_rows, 1}), ids});
  b.set_scope({"deep", Phase::forward, {}});
  std::vector<ValueId> parts{b.add_node("EmbeddingBag", {deep_table, ids})};
  if (beside != Beside::nothing) {
    const ValueId others = b.input("others", {DType::int32, {samples, 2, bag}});
    b.set_scope({"other", Phase::forward, {}});
    const ValueId ones = b.filled(1, {DType::float32, {samples, 2, bag}});
    const auto add_bags = [&](std::vector<ValueId> inputs) {
      parts.push_back(b.reshape(b.add_node("EmbeddingBag", std::move(inputs)), {samples, 2 * 12}));
    };
    if (beside == Beside::weighted) {
      HostTensor weights(TensorType{DType::float32, {2, bag}});
      for (std::int64_t i = 0; i < 2 * bag; ++i)
        weights.as<float>()[i] = static_cast<float>(i % 7) / 8;  // some are 0
      add_bags({deep_table, others, b.mul(b.constant(weights), ones)});
    } else if (beside == Beside::trained_weights) {
      add_bags({deep_table, others, b.mul(parameter("mix.weight", {2, bag}), ones)});
    } else if (beside == Beside::bags_of_two) {
      const ValueId turned = b.transpose(others, {1, 0, 2});  // samples are not the first axis
      const ValueId sums = b.add_node("EmbeddingBag", {deep_table, turned});
      parts.push_back(b.reshape(b.transpose(sums, {1, 0, 2}), {samples, 2 * 12}));
    } else {
      const ValueId rows = b.add_node("Gather", {deep_table, others}, {{"axis", std::int64_t{0}}});
      parts.push_back(b.reshape(rows, {samples, 2 * bag * 12}));
    }
  }
  b.set_scope({"dense", Phase::forward, {}});
  const ValueId x =
      parts.size() == 1 ? parts[0] : b.add_node("Concat", parts, {{"axis", std::int64_t{1}}});
  b.output("y", b.add(b.matmul(x, parameter("dense.weight", {b.shape(x)[1], 1})), wide));
  return b.finish();
}

struct Bags {
  std::vector<std::string> keys;
  Beside beside = Beside::nothing;
  std::int64_t batch = 24, micro_batch = 24;
  Ids ids = Ids::spread;
  int device = 0;
  std::int64_t wrong_id = 0;  // where it is not 0, the first of the second sample
};

GraphTraining training_of_bags(const Bags& of) {
  return {
      .keys = of.keys,
      .batch = of.batch,
      .micro_batch = of.micro_batch,
      .device = of.device,
      .steps = steps,
      .forward = [=](const OperatorSet& operators,
                     std::int64_t samples) { return bags_graph(operators, samples, of.beside); },
      .feed =
          [=](const std::string& name, std::int64_t first, std::int64_t samples, void* slot) {
            for (std::int64_t e = 0; name == "ids" && e < samples * bag; ++e) {
              const std::int64_t position = first * bag + e;
              const bool is_wrong = of.wrong_id != 0 && position == bag;
              static_cast<std::int64_t*>(slot)[e] =
                  is_wrong ? of.wrong_id : id_of(of.ids, position);
            }
            // From the end, absent, or twice.
            for (std::int64_t e = 0; name == "others" && e < samples * 2 * bag; ++e) {
              const std::int64_t position = first * 2 * bag + e;
              static_cast<std::int32_t*>(slot)[e] =
                  position % 5 == 0 ? absent_id<std::int32_t>
                                    : static_cast<std::int32_t>(-1 - position * 31 % 40);
            }
          },
      .shards = by_rows};
}

std::map<std::string, int> collectives(const Bags& of) {
  const OperatorSet operators = all_operators();
  const GraphTraining training = training_of_bags(of);
  const Graph graph =
      training_graph(operators, config_of(training), training, MicroBatchKind::whole, {0, 4}).graph;
  std::map<std::string, int> count;
  for (const Node& node : graph.nodes) {
    if (node.op->role == Role::collective) ++count[node.op->name];
  }
  return count;
}

const std::vector<std::string> usual = optimizers(ftrl, lazy_adam);

// Sums of 16 rows are made in another order; Adam makes steps of the signs of small gradients.
void expect_bags_as_alone(const Bags& of, std::initializer_list<int> counts) {
  expect_training_as_alone(training_of_bags(of), counts, 1e-5);
}

TEST(ShardBags, RowOptimizersOfTheirOwners) {
  expect_bags_as_alone({.keys = usual}, {2, 3, 4});
  expect_bags_as_alone({.keys = optimizers(ftrl, "kind=\"rowwise_adagrad\"")}, {3});
  // Rows without a gradient move, too: the dense form of a part.
  expect_bags_as_alone({.keys = optimizers(ftrl, "kind=\"adam\"")}, {2});
}

TEST(ShardBags, OtherBags) {
  for (const Beside beside : {Beside::weighted, Beside::trained_weights, Beside::bags_of_two})
    expect_bags_as_alone({.keys = usual, .beside = beside}, {2, 3});
}

TEST(ShardBags, BesideRowsThatCross) {
  expect_bags_as_alone({.keys = usual, .beside = Beside::rows}, {2, 3});
}

TEST(ShardBags, FrequentIds) {
  expect_bags_as_alone({.keys = usual, .batch = 60, .micro_batch = 60, .ids = Ids::zipf}, {2, 4});
}

TEST(ShardBags, OwnersWhoseRowsNobodyAsksFor) {
  expect_bags_as_alone({.keys = usual, .ids = Ids::of_few_owners}, {2, 3, 4});
}

// The padding of a rank that has one sample less touches no row: otherwise lazy moments would move.
TEST(ShardBags, SharesMayDifferByASample) {
  for (const Beside beside : {Beside::nothing, Beside::weighted, Beside::bags_of_two}) {
    expect_bags_as_alone({.keys = usual, .beside = beside, .batch = 7, .micro_batch = 7},
                         {2, 3, 4});
  }
}

TEST(ShardBags, MicroBatches) { expect_bags_as_alone({.keys = usual, .micro_batch = 8}, {2, 3}); }

TEST(ShardBags, NormsAreOfAllRanks) {
  expect_bags_as_alone({.keys = optimizers(ftrl, lazy_adam, {"optimizer.clip_norm=0.01"})}, {2, 3});
}

TEST(ShardBags, OnAnAccelerator) {
  expect_bags_as_alone({.keys = usual, .beside = Beside::weighted, .device = 1}, {2});
}

TEST(ShardBags, SplitTablesAndFixedRows) {
  expect_bags_as_alone(
      {.keys = optimizers(ftrl, lazy_adam,
                          {R"(parameters.storage=[{at="deep:weight", kind="split_bfloat16"}])",
                           R"(parameters.fixed_rows=[{at="deep:weight", rows=[0, 1, 1234]}])"}),
       .ids = Ids::zipf},
      {2, 3});
}

TEST(ShardBags, TheSameRanksGiveTheSameBits) {
  const GraphTraining of = training_of_bags({.keys = usual, .ids = Ids::zipf});
  const std::vector<TrainedGraph> first = train_graph_on(3, of), second = train_graph_on(3, of);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(first[rank].losses, second[rank].losses);
    for (const auto& [name, value] : first[rank].states)
      EXPECT_EQ(std::memcmp(value.data(), second[rank].states.at(name).data(), value.bytes()), 0)
          << name;
  }
}

TEST(ShardBags, IdsOfNoRowAreReportedAsOnOneProcess) {
  const GraphTraining of = training_of_bags({.keys = usual, .wrong_id = sharded_rows});
  const TrainedGraph alone = train_graph(of);
  ASSERT_TRUE(alone.error.has_value());
  const std::vector<TrainedGraph> all = train_graph_on(2, of);
  ASSERT_TRUE(all[0].error.has_value());  // whose sample it is
  EXPECT_FALSE(all[1].error.has_value());
  EXPECT_EQ(all[0].error->value, sharded_rows);
  EXPECT_EQ(all[0].error->path, alone.error->path);
}

// Ids cross once for both tables; the sums of each cross, and so do their gradients.
TEST(ShardBags, CrossOnce) {
  const std::map<std::string, int> count = collectives({.keys = usual});
  EXPECT_FALSE(count.contains(exchange_rows_name));
  EXPECT_FALSE(count.contains(all_to_all_name));
  EXPECT_EQ(count.at(all_gather_name), 1 + 2);
  EXPECT_EQ(count.at(reduce_scatter_name), 2);
  EXPECT_FALSE(
      collectives({.keys = usual, .beside = Beside::bags_of_two}).contains(exchange_rows_name));
  EXPECT_TRUE(
      collectives({.keys = usual, .beside = Beside::trained_weights}).contains(exchange_rows_name));
}

/// Whether sums cross for lookups in tables of that many rows and columns, by the same ids.
bool crosses(const Shape& ids_shape, std::int64_t rows, const RankShares& ranks,
             const Shape& columns = {80}, bool of_a_state = false) {
  const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  const auto state = [&](const std::string& name, const TensorType& type) {
    State state;
    state.name = state.path = name;
    state.start = HostTensor(type);
    return b.state(std::move(state));
  };
  ValueId ids = b.input("ids", {DType::int64, ids_shape});
  if (of_a_state) ids = b.add(ids, state("offset", {DType::int64, {}}));
  std::vector<TableLookup> lookups;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const TensorType type{DType::float32, {rows, columns[i]}};
    const std::string number = std::to_string(i);
    const ValueId y = b.add_node("EmbeddingBag", {state("table" + number, type), ids});
    b.output("y" + number, y);
    lookups.push_back({b.graph().value(y).producer, type});
  }
  return crosses_as_sums(b.finish(), lookups, ranks);
}

// Bytes: (n - 1) (4 ids + 2 row sums) against (n - 1) / n (8 + 2 row) rows.
TEST(ShardBags, WhereSumsAreLess) {
  EXPECT_TRUE(crosses({100, 39}, 10000, {31}));
  EXPECT_FALSE(crosses({100, 39}, 10000, {32}));
  EXPECT_TRUE(crosses({100, 39}, 10000, {3}, {1}));
  EXPECT_FALSE(crosses({100, 39}, 10000, {4}, {1}));
  EXPECT_TRUE(crosses({100, 39}, 10000, {30}, {1, 80}));  // the ids of both cross once
  EXPECT_TRUE(crosses({100, 2}, 10000, {2}));
  EXPECT_FALSE(crosses({100, 1}, 10000, {2}));
  EXPECT_FALSE(crosses({100, 39}, 100, {2}));  // all rows are fewer
  EXPECT_FALSE(crosses({39}, 10000, {2}));     // one bag of no sample
  EXPECT_FALSE(crosses({100, 39}, 10000, {2}, {80}, true));
}

// Wherever the axis of samples is, and also where a rank evaluates one sample and others eight.
TEST(ShardBags, RanksWithOtherSharesDecideAlike) {
  for (const std::int64_t own : {1, 2, 3, 8}) {
    SCOPED_TRACE(own);
    const RankShares ranks{2, own, 8, 0};
    EXPECT_TRUE(crosses({own, 16}, 1000, ranks));
    EXPECT_TRUE(crosses({2, own, 16}, 1000, ranks));
    EXPECT_TRUE(crosses({own, 3, 16}, 1000, ranks));
    EXPECT_FALSE(crosses({own, 1}, 1000, ranks));
  }
}

}  // namespace
}  // namespace tandem::testing
