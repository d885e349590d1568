// Tables that ranks share by rows, by columns, or whole: a wide and a deep table with the same ids,
// and other lookups of the deep one. One process with whole tables is the reference; the ranks are
// threads.
#include "engine/training/ranks/shard_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/graph/shard_parts.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/tables/rows.h"
#include "tests/training/ranks/graph_training.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t sharded_rows = 2003, sharded_fields = 5;
constexpr int steps = 4;

/// What is looked up besides the ids that the two tables have in common.
enum class More { nothing, other_ids, ids_of_a_lookup };

Graph forward_graph(const OperatorSet& operators, std::int64_t samples, More more,
                    std::int64_t columns = 4) {
  GraphBuilder b(operators);
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    return b.state(sine_parameter(name, shape));
  };
  const Attributes first_axis{{"axis", std::int64_t{0}}};
  const ValueId ids = b.input("ids", {DType::int64, {samples, sharded_fields}});
  const ValueId deep_table = parameter("deep.weight", {sharded_rows, columns});
  b.set_scope({"wide", Phase::forward, {}});
  const ValueId wide =
      b.add_node("EmbeddingBag", {parameter("wide.weight", {sharded_rows, 1}), ids});
  b.set_scope({"deep", Phase::forward, {}});
  const ValueId deep = b.add_node("Gather", {deep_table, ids}, first_axis);
  std::vector<ValueId> parts{b.reshape(deep, {samples, sharded_fields * columns})};
  if (more == More::other_ids) {
    // Other ids of int32, from the end, absent or twice, with weights.
    const ValueId others = b.input("others", {DType::int32, {samples, 2}});
    b.set_scope({"bag", Phase::forward, {}});
    const ValueId weights = b.filled(0.5, {DType::float32, {samples, 2}});
    parts.push_back(b.add_node("EmbeddingBag", {deep_table, others, weights}));
    b.set_scope({"again", Phase::forward, {}});
    parts.push_back(b.reshape(b.add_node("Gather", {deep_table, ids}, first_axis),
                              {samples, sharded_fields * columns}));
  } else if (more == More::ids_of_a_lookup) {
    // The sign of what was found chooses among two rows.
    b.set_scope({"next", Phase::forward, {}});
    const ValueId found = b.reshape(
        b.add_node("Slice", {parts[0]},
                   {{"starts", Ints{0, 0}}, {"sizes", Ints{samples, 1}}, {"steps", Ints{1, 1}}}),
        {samples});
    const ValueId is_above =
        b.add_node("Greater", {found, b.filled(0.0, {DType::float32, {samples}})});
    const auto integer = [&](std::int64_t id) {
      return b.constant(HostTensor::from<std::int64_t>({}, {id}));
    };
    const ValueId next = b.add_node("Where", {is_above, integer(3), integer(1000)});
    parts.push_back(b.add_node("Gather", {deep_table, next}, first_axis));
  }
  b.set_scope({"dense", Phase::forward, {}});
  const ValueId x =
      parts.size() == 1 ? parts[0] : b.add_node("Concat", parts, {{"axis", std::int64_t{1}}});
  const ValueId product = b.matmul(x, parameter("dense.weight", {b.shape(x)[1], 1}));
  b.output("y", b.add(product, wide));
  return b.finish();
}

enum class Ids { spread, zipf, of_few_owners };

const Shardings by_rows{{"wide.weight", Sharding::rows}, {"deep.weight", Sharding::rows}},
    whole_tables{{"wide.weight", Sharding::table}, {"deep.weight", Sharding::table}},
    by_columns{{"deep.weight", Sharding::columns}};  // the wide one has one column

std::int64_t id_of(Ids kind, std::int64_t position) {
  std::mt19937_64 random(static_cast<std::uint64_t>(position) * 7919 + 13);
  if (kind == Ids::of_few_owners) return static_cast<std::int64_t>(random() % 20) * 60;
  if (kind == Ids::spread) return static_cast<std::int64_t>(random() % sharded_rows);
  const double uniform = std::uniform_real_distribution<double>(0, 1)(random);
  return std::min(static_cast<std::int64_t>(std::pow(double{sharded_rows}, uniform)),
                  sharded_rows) -
         1;
}

struct Case {
  std::vector<std::string> keys;
  std::int64_t batch = 24, micro_batch = 24;
  More more = More::nothing;
  Ids ids = Ids::spread;
  int device = 0;
  std::int64_t wrong_id = 0;  // where it is not 0, in place of one of them
  std::int64_t columns = 4;   // of the deep table
  Shardings shards = by_rows;
};

void feed_ids(const Case& of, const std::string& name, std::int64_t first, std::int64_t samples,
              void* slot) {
  if (name == "ids") {
    for (std::int64_t e = 0; e < samples * sharded_fields; ++e) {
      const std::int64_t position = first * sharded_fields + e;
      const bool is_wrong = of.wrong_id != 0 && position == sharded_fields;
      static_cast<std::int64_t*>(slot)[e] = is_wrong ? of.wrong_id : id_of(of.ids, position);
    }
  } else if (name == "others") {
    for (std::int64_t e = 0; e < samples * 2; ++e) {
      const std::int64_t position = first * 2 + e;
      static_cast<std::int32_t*>(slot)[e] =
          position % 5 == 0 ? absent_id<std::int32_t>
                            : static_cast<std::int32_t>(-1 - position * 31 % 40);
    }
  }
}

GraphTraining training_of(const Case& of) {
  return {.keys = of.keys,
          .batch = of.batch,
          .micro_batch = of.micro_batch,
          .device = of.device,
          .steps = steps,
          .forward =
              [=](const OperatorSet& operators, std::int64_t samples) {
                return forward_graph(operators, samples, of.more, of.columns);
              },
          .feed = [=](const std::string& name, std::int64_t first, std::int64_t samples,
                      void* slot) { feed_ids(of, name, first, samples, slot); },
          .shards = of.shards};
}

TrainedGraph train(const Case& of) { return train_graph(training_of(of)); }
std::vector<TrainedGraph> train_on(int ranks, const Case& of) {
  return train_graph_on(ranks, training_of(of));
}

/// The whole of a state, of the ranks' parts where it is shared out.
std::vector<double> assembled_table(const std::vector<TrainedGraph>& all, const std::string& name) {
  const auto ranks = static_cast<std::int64_t>(all.size());
  const auto shard = all[0].shards.find(name);
  const auto& own = all[0].states.at(name);
  std::vector<double> numbers;
  if (shard == all[0].shards.end()) {
    for (std::int64_t i = 0; i < own.type().elements(); ++i) numbers.push_back(own.number(i));
    return numbers;
  }
  const TensorType& whole = shard->second.whole;
  if (shard->second.kind == ShardKind::table) {
    const HostTensor& all_rows = all[static_cast<std::size_t>(shard->second.owner)].states.at(name);
    for (std::int64_t i = 0; i < all_rows.type().elements(); ++i)
      numbers.push_back(all_rows.number(i));
    return numbers;
  }
  const std::int64_t width = whole.elements() / whole.shape[0];
  if (shard->second.kind == ShardKind::column_blocks) {
    const std::int64_t share = (width + ranks - 1) / ranks;
    for (std::int64_t i = 0; i < whole.elements(); ++i) {
      const std::int64_t c = i % width;
      const HostTensor& part = all[static_cast<std::size_t>(c / share)].states.at(name);
      numbers.push_back(part.number(i / width * share + c % share));
    }
    return numbers;
  }
  for (std::int64_t row = 0; row < whole.shape[0]; ++row) {
    const HostTensor& part = all[static_cast<std::size_t>(row % ranks)].states.at(name);
    for (std::int64_t c = 0; c < width; ++c)
      numbers.push_back(part.number(row / ranks * width + c));
  }
  return numbers;
}

void expect_as_alone(const Case& of, std::initializer_list<int> counts) {
  const TrainedGraph alone = train(of);
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const std::vector<TrainedGraph> all = train_on(ranks, of);
    for (const TrainedGraph& one : all) {
      EXPECT_EQ(one.losses, all[0].losses);
      EXPECT_NEAR(one.norm, alone.norm, 1e-6 * std::max(1.0f, alone.norm));
      for (int step = 0; step < steps; ++step)
        EXPECT_NEAR(one.losses[step], alone.losses[step], 1e-6) << "step " << step + 1;
      for (const auto& [name, shard] : all[0].shards) {
        ASSERT_TRUE(one.shards.contains(name)) << name;
        EXPECT_EQ(one.states.at(name).type(), one.shards.at(name).part()) << name;
        EXPECT_EQ(one.shards.at(name).owner, shard.owner) << name;
      }
    }
    for (const auto& [name, expected] : alone.states) {
      ASSERT_TRUE(all[0].states.contains(name)) << name;
      const std::vector<double> whole = assembled_table(all, name);
      ASSERT_EQ(static_cast<std::int64_t>(whole.size()), expected.type().elements()) << name;
      for (std::size_t i = 0; i < whole.size(); ++i)
        ASSERT_NEAR(whole[i], expected.number(static_cast<std::int64_t>(i)), 1e-6)
            << name << " " << i;
    }
    EXPECT_TRUE(all[0].shards.contains("deep.weight"));
  }
}

std::vector<std::string> optimizers(const std::string& wide, const std::string& deep,
                                    std::vector<std::string> more = {}) {
  more.push_back("optimizer.kind=sgd");
  more.push_back("optimizer.groups=[{at=\"wide:*\", " + wide + "}, {at=\"deep:*\", " + deep + "}]");
  return more;
}
const std::string ftrl = "kind=\"ftrl\", l1=1e-4, l2=1e-4, initial_accumulator=0.1",
                  lazy_adam = "kind=\"lazy_adam\"";

TEST(ShardTables, RowOptimizersOfTheirOwners) {
  const auto of = [&](const std::string& deep) { return Case{.keys = optimizers(ftrl, deep)}; };
  expect_as_alone(of(lazy_adam), {2, 3, 4});
  expect_as_alone(of("kind=\"rowwise_adagrad\""), {3});
  // Rows without a gradient move, too: the dense form of a part.
  expect_as_alone(of("kind=\"adam\""), {2, 3});
  expect_as_alone(of("kind=\"sgd\", momentum=0.9"), {3});
}

// Nine of ten ids are of few rows; each crosses once.
TEST(ShardTables, FrequentIds) {
  expect_as_alone(
      {.keys = optimizers(ftrl, lazy_adam), .batch = 60, .micro_batch = 60, .ids = Ids::zipf},
      {2, 4});
}

TEST(ShardTables, OwnersWhoseRowsNobodyAsksFor) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam), .ids = Ids::of_few_owners}, {2, 3, 4});
}

TEST(ShardTables, LookupsOfOtherIds) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam), .more = More::other_ids}, {2, 3});
}

TEST(ShardTables, IdsThatFollowFromALookup) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam), .more = More::ids_of_a_lookup}, {2, 3});
}

TEST(ShardTables, SharesMayDifferByASample) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam), .batch = 7, .micro_batch = 7}, {2, 3, 4});
}

TEST(ShardTables, MicroBatches) {
  for (const std::string& deep : {lazy_adam, std::string("kind=\"adam\"")}) {
    expect_as_alone({.keys = optimizers(ftrl, deep), .micro_batch = 8}, {2, 3});
  }
}

TEST(ShardTables, NormsAreOfAllRanks) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam, {"optimizer.clip_norm=0.01"})}, {2, 3});
  expect_as_alone({.keys = optimizers(ftrl, "kind=\"adam\"", {"optimizer.clip_norm=0.01"})}, {2});
}

TEST(ShardTables, ALossScaleSeesAllParts) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam, {"precision.compute=\"float16\""})}, {2});
}

TEST(ShardTables, OnAnAccelerator) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam), .device = 1}, {2});
}

TEST(ShardTables, TheSameRanksGiveTheSameBits) {
  const Case of{.keys = optimizers(ftrl, lazy_adam), .ids = Ids::zipf};
  const std::vector<TrainedGraph> first = train_on(3, of), second = train_on(3, of);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(first[rank].losses, second[rank].losses);
    for (const auto& [name, value] : first[rank].states)
      EXPECT_EQ(std::memcmp(value.data(), second[rank].states.at(name).data(), value.bytes()), 0)
          << name;
  }
}

TEST(ShardTables, FixedRowsAreThoseOfTheWhole) {
  const std::string fixed = R"(parameters.fixed_rows=[{at="deep:weight", rows=[0, 1, 1234]}])";
  for (const std::string& deep : {lazy_adam, std::string("kind=\"adam\"")})
    expect_as_alone({.keys = optimizers(ftrl, deep, {fixed}), .ids = Ids::zipf}, {2, 3});
}

TEST(ShardTables, FrozenTablesAreLookedUp) {
  expect_as_alone({.keys = {"optimizer.kind=sgd", "parameters.freeze=[{at=\"deep:*\"}]"}}, {3});
}

TEST(ShardTables, SplitTables) {
  const std::string split = R"(parameters.storage=[{at="deep:weight", kind="split_bfloat16"}])";
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam, {split})}, {2, 3});
}

// Each with another rank; of three ranks one has none.
TEST(ShardTables, WholeTables) {
  for (const std::string& deep :
       {lazy_adam, std::string("kind=\"rowwise_adagrad\""), std::string("kind=\"adam\"")}) {
    SCOPED_TRACE(deep);
    expect_as_alone({.keys = optimizers(ftrl, deep), .shards = whole_tables}, {2, 3});
  }
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam),
                   .more = More::other_ids,
                   .ids = Ids::zipf,
                   .shards = whole_tables},
                  {2, 4});
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam), .micro_batch = 8, .shards = whole_tables},
                  {2});
  expect_as_alone(
      {.keys = optimizers(ftrl, lazy_adam), .batch = 7, .micro_batch = 7, .shards = whole_tables},
      {3});
  expect_as_alone(
      {.keys = optimizers(ftrl, lazy_adam, {"optimizer.clip_norm=0.01"}), .shards = whole_tables},
      {2});
}

TEST(ShardTables, AWholeTableBesideOneByRows) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam),
                   .shards = {{"wide.weight", Sharding::table}, {"deep.weight", Sharding::rows}}},
                  {2, 3});
}

TEST(ShardTables, WholeTablesAreWithOneRankEach) {
  const std::vector<TrainedGraph> all =
      train_on(3, {.keys = optimizers(ftrl, lazy_adam), .shards = whole_tables});
  // The deep table is the heavier one.
  EXPECT_EQ(all[0].states.at("deep.weight").shape(), (Shape{sharded_rows, 4}));
  EXPECT_EQ(all[1].states.at("wide.weight").shape(), (Shape{sharded_rows, 1}));
  for (const auto& [name, owner] : {std::pair{"deep.weight", 0u}, std::pair{"wide.weight", 1u}}) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      if (rank != owner) {
        EXPECT_EQ(all[rank].states.at(name).shape()[0], 1) << name << " on " << rank;
      }
    }
  }
}

// Of the four columns two ranks have two each, four one, and three ranks of five columns 2, 2, 1.
TEST(ShardTables, Columns) {
  for (const std::string& deep :
       {lazy_adam, ftrl, std::string("kind=\"sgd\""), std::string("kind=\"adam\"")}) {
    SCOPED_TRACE(deep);
    expect_as_alone({.keys = optimizers(ftrl, deep), .shards = by_columns}, {2, 4});
  }
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam), .columns = 5, .shards = by_columns}, {3});
}

TEST(ShardTables, ColumnsOfOtherLookups) {
  const auto of = [&](std::vector<std::string> more) {
    return Case{.keys = optimizers(ftrl, lazy_adam, std::move(more)), .shards = by_columns};
  };
  Case each = of({});
  each.more = More::other_ids;
  each.ids = Ids::zipf;
  expect_as_alone(each, {2, 4});
  each.more = More::ids_of_a_lookup;
  expect_as_alone(each, {2});
  each = of({});
  each.batch = each.micro_batch = 7;  // shares differ by a sample
  expect_as_alone(each, {2, 4});
  each = of({});
  each.micro_batch = 8;
  expect_as_alone(each, {2});
  each = of({});
  each.device = 1;
  expect_as_alone(each, {2});
  expect_as_alone(of({"optimizer.clip_norm=0.01"}), {2});
}

TEST(ShardTables, ColumnsWithFixedRowsSplitStorageAndFrozen) {
  for (const std::string key : {R"(parameters.fixed_rows=[{at="deep:weight", rows=[0, 1, 1234]}])",
                                R"(parameters.storage=[{at="deep:weight", kind="split_bfloat16"}])",
                                R"(parameters.freeze=[{at="deep:*"}])"}) {
    SCOPED_TRACE(key);
    Case of{.keys = optimizers(ftrl, lazy_adam, {key}), .ids = Ids::zipf, .shards = by_columns};
    if (key.find("freeze") != std::string::npos) of.keys = {"optimizer.kind=sgd", key};
    expect_as_alone(of, {2});
  }
}

TEST(ShardTables, ColumnsBesideATableByRows) {
  expect_as_alone({.keys = optimizers(ftrl, lazy_adam),
                   .ids = Ids::zipf,
                   .shards = {{"wide.weight", Sharding::rows}, {"deep.weight", Sharding::columns}}},
                  {2, 4});
}

TEST(ShardTables, EachRankKeepsItsColumnsAndTheirStates) {
  const std::vector<TrainedGraph> all =
      train_on(3, {.keys = optimizers(ftrl, lazy_adam), .columns = 5, .shards = by_columns});
  for (const TrainedGraph& one : all) {
    for (const char* name : {"deep.weight", "deep.weight/exp_avg", "deep.weight/exp_avg_sq"}) {
      EXPECT_EQ(one.states.at(name).shape(), (Shape{sharded_rows, 2})) << name;
      EXPECT_EQ(one.shards.at(name).kind, ShardKind::column_blocks) << name;
      EXPECT_EQ(one.shards.at(name).whole.shape, (Shape{sharded_rows, 5})) << name;
    }
    EXPECT_FALSE(one.shards.contains("wide.weight"));
  }
  // The last rank has one column, and padding that stays as it is.
  const HostTensor& last = all[2].states.at("deep.weight");
  for (std::int64_t row = 0; row < sharded_rows; ++row)
    ASSERT_EQ(last.number(2 * row + 1), 0) << row;
}

// Of each row that a rank looks up all ranks send their piece, once, and get its gradient back.
TEST(ShardTables, ColumnsCrossOnce) {
  const OperatorSet operators = all_operators();
  const GraphTraining training =
      training_of({.keys = optimizers(ftrl, lazy_adam), .shards = by_columns});
  const Graph graph =
      training_graph(operators, config_of(training), training, MicroBatchKind::whole, {0, 4}).graph;
  std::vector<Shape> exchanged;
  for (const Node& node : graph.nodes) {
    if (node.op->name == exchange_rows_name) exchanged.push_back(graph.type(node.outputs[0]).shape);
  }
  // Six of 24 samples: ids that this rank is asked for, pieces that come, gradients that go back.
  const std::int64_t ids = 4 * 6 * sharded_fields;
  EXPECT_THAT(exchanged, ::testing::ElementsAre(Shape{ids}, Shape{ids, 1}, Shape{ids, 1}));
}

// Ids are 30 a rank. By rows each rank is asked by all for a quarter of theirs; of a whole table
// its owner for all of them; by columns each for all, a quarter of each row.
TEST(ShardTables, EstimatesCountTheRowsThatThereAre) {
  const OperatorSet operators = all_operators();
  const auto bytes = [&](const Shardings& shards) {
    const GraphTraining training =
        training_of({.keys = optimizers(ftrl, lazy_adam), .shards = shards});
    const Graph graph =
        training_graph(operators, config_of(training), training, MicroBatchKind::whole, {0, 4})
            .graph;
    std::vector<double> all;
    for (const Node& node : graph.nodes) {
      if (node.op->name == exchange_rows_name) all.push_back(ring_traffic(graph, node).bytes);
    }
    return all;
  };
  // Three of four parts cross: of ids of 8 bytes, rows of 16, gradients of 16.
  using ::testing::ElementsAre;
  EXPECT_THAT(bytes({{"deep.weight", Sharding::rows}}),
              ElementsAre(0.75 * 30 * 8, 0.75 * 30 * 16, 0.75 * 30 * 16));
  EXPECT_THAT(bytes({{"deep.weight", Sharding::table}}),
              ElementsAre(0.75 * 120 * 8, 0.75 * 120 * 16, 0.75 * 120 * 16));
  EXPECT_THAT(bytes(by_columns), ElementsAre(0.75 * 120 * 8, 0.75 * 120 * 4, 0.75 * 120 * 4));
}

// Ids cross once for both tables; rows of each cross, and so do their gradients.
TEST(ShardTables, TablesWithTheSameIdsAskOnce) {
  const OperatorSet operators = all_operators();
  const Case of{.keys = optimizers(ftrl, lazy_adam), .more = More::other_ids};
  const auto collectives = [&](const Case& each) {
    const GraphTraining training = training_of(each);
    const RunConfig config = config_of(training);
    std::map<std::string, int> count;
    for (const Node& node :
         training_graph(operators, config, training, MicroBatchKind::whole, {0, 4}).graph.nodes) {
      if (node.op->role == Role::collective) ++count[node.op->name];
    }
    return count;
  };
  EXPECT_EQ(collectives({.keys = of.keys})[exchange_rows_name], 1 + 2 * 2);
  EXPECT_EQ(collectives({.keys = of.keys})[all_to_all_name], 1);
  // The deep table's ids are more than the wide one's.
  EXPECT_EQ(collectives(of)[exchange_rows_name], 2 + 2 * 2);
  // Its gradients are not gathered.
  EXPECT_EQ(collectives(of)[all_gather_name], 0);
}

void expect_reported(const Shardings& shards) {
  for (const std::int64_t wrong : {sharded_rows, -sharded_rows - 1, std::int64_t{1} << 40}) {
    const Case of{.keys = optimizers(ftrl, lazy_adam), .wrong_id = wrong, .shards = shards};
    const TrainedGraph alone = train(of);
    ASSERT_TRUE(alone.error.has_value());
    const std::vector<TrainedGraph> all = train_on(2, of);
    ASSERT_TRUE(all[0].error.has_value());  // whose sample it is
    EXPECT_FALSE(all[1].error.has_value());
    EXPECT_EQ(all[0].error->kind, alone.error->kind);
    EXPECT_EQ(all[0].error->value, wrong);
    EXPECT_EQ(all[0].error->path, alone.error->path);
  }
}

TEST(ShardTables, IdsOfNoRowAreReportedAsOnOneProcess) {
  expect_reported(by_rows);
  expect_reported(by_columns);
}

std::string refused(const Case& of, const std::function<void(GraphBuilder&)>& change = {},
                    Shardings shards = by_rows, int ranks = 2) {
  const OperatorSet operators = all_operators();
  GraphBuilder g(operators, forward_graph(operators, 8, of.more, of.columns));
  if (change) change(g);
  const RunConfig config = config_of(training_of(of));
  TrainingRequest request;
  request.config = &config;
  request.samples = {8, 8};
  request.fields = {{"t", {DType::float32, {8, 1}}}};
  request.ranks = {ranks, 8, 8, 0};
  request.shards = std::move(shards);
  try {
    build_training_graph(operators, g.finish(), request);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(ShardTables, WhatIsNoTableOfLookups) {
  const Case of{.keys = optimizers(ftrl, lazy_adam)};
  EXPECT_EQ(refused(of), "");
  EXPECT_THAT(refused(of,
                      [](GraphBuilder& g) {
                        const ValueId table = g.graph().find_state("deep.weight")->initial;
                        g.set_scope({"more", Phase::forward, {}});
                        const ValueId squares = g.reduce_sum(g.mul(table, table), {0, 1}, false);
                        g.graph().outputs[0].value = g.add(g.graph().outputs[0].value, squares);
                      }),
              AllOf(HasSubstr("deep:weight"), HasSubstr("more (Mul)"), HasSubstr("shard")));
  EXPECT_THAT(refused(of,
                      [](GraphBuilder& g) {
                        g.output("table", g.graph().find_state("deep.weight")->initial);
                      }),
              AllOf(HasSubstr("deep:weight"), HasSubstr("output table")));
  EXPECT_THAT(refused(of,
                      [](GraphBuilder& g) {
                        State cache = *g.graph().find_state("deep.weight");
                        cache.name = "deep.weight/cache";
                        cache.derived = CachedRows{"deep.weight",
                                                   std::make_shared<std::vector<std::int64_t>>()};
                        g.state(std::move(cache));
                      }),
              AllOf(HasSubstr("deep:weight"), HasSubstr("cache")));
}

TEST(ShardTables, KindsThatRestOnTheWholeTable) {
  for (const std::string kind : {"lamb", "adafactor"}) {
    EXPECT_THAT(refused({.keys = optimizers(ftrl, "kind=\"" + kind + "\"")}),
                AllOf(HasSubstr("deep:weight"), HasSubstr(kind), HasSubstr("rests on the whole")));
  }
}

TEST(ShardTables, KindsThatRestOnWholeRows) {
  for (const std::string kind : {"rowwise_adagrad", "group_ftrl", "lamb", "adafactor"}) {
    EXPECT_THAT(refused({.keys = optimizers(ftrl, "kind=\"" + kind + "\"")}, {}, by_columns),
                AllOf(HasSubstr("deep:weight"), HasSubstr(kind), HasSubstr("rests on whole rows"),
                      HasSubstr("shares out its columns")));
  }
}

// A row of a table is one unit: its norm is that of all columns.
TEST(ShardTables, AdaptiveLimitsNeedWholeUnits) {
  const Case of{.keys = optimizers(ftrl, lazy_adam, {"optimizer.clip_adaptive=0.01"})};
  EXPECT_EQ(refused(of), "");
  EXPECT_EQ(refused(of, {}, whole_tables), "");
  EXPECT_THAT(refused(of, {}, by_columns),
              AllOf(HasSubstr("deep:weight"), HasSubstr("clip_adaptive needs whole output units"),
                    HasSubstr("shares out its columns")));
}

TEST(ShardTables, FewerColumnsThanRanks) {
  const Case of{.keys = optimizers(ftrl, lazy_adam)};
  EXPECT_EQ(refused(of, {}, by_columns, 4), "");
  // Blocks of one column, and of two, of which the third rank would have none.
  for (const int ranks : {5, 3}) {
    EXPECT_THAT(refused(of, {}, by_columns, ranks),
                AllOf(HasSubstr("deep:weight"), HasSubstr("its columns cannot be shared out"),
                      HasSubstr("some of " + std::to_string(ranks) + " ranks would have none"),
                      HasSubstr("take `shard = \"columns\"` away")));
  }
  EXPECT_THAT(refused(of, {}, {{"wide.weight", Sharding::columns}}),
              AllOf(HasSubstr("wide:weight"), HasSubstr("would have none")));
}

TEST(ShardTables, ColumnsThatSomethingElseReads) {
  EXPECT_THAT(
      refused(
          {.keys = optimizers(ftrl, lazy_adam)},
          [](GraphBuilder& g) { g.output("table", g.graph().find_state("deep.weight")->initial); },
          by_columns),
      AllOf(HasSubstr("deep:weight"), HasSubstr("its columns cannot be shared out"),
            HasSubstr("output table")));
}

TEST(ShardTables, OneRankKeepsItsTables) {
  const Case of{.keys = optimizers(ftrl, lazy_adam)};
  const TrainedGraph alone = train(of);
  EXPECT_TRUE(alone.shards.empty());
  EXPECT_EQ(alone.states.at("deep.weight").shape(), (Shape{sharded_rows, 4}));
}

}  // namespace
}  // namespace tandem::testing
