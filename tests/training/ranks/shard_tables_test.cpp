// Tables that are sharded by rows, by columns or whole, where rows cross between ranks.
#include "engine/train/sharding/shard_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/tables/rows.h"
#include "tests/training/ranks/sharded_tables.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ShardTables, RowOptimizersOfTheirOwners) {
  const auto of = [&](const std::string& deep) { return Case{.keys = optimizers(ftrl, deep)}; };
  expect_as_alone(of(lazy_adam), {2, 3, 4});
  expect_as_alone(of("kind=\"rowwise_adagrad\""), {3});
  // Rows without a gradient move, too: the dense form of a part.
  expect_as_alone(of("kind=\"adam\""), {2, 3});
  expect_as_alone(of("kind=\"sgd\", momentum=0.9"), {3});
}

// Nine of ten ids name a few rows, each of which crosses once.
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

// Each table is on another rank; with three ranks one has none.
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

// Two ranks have two of the four columns each, four have one; three ranks have 2, 2, 1 of five.
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

// All ranks send their piece of each row that a rank looks up, once, and get its gradient back.
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

// Each rank has 30 ids. By rows, all ask each rank for a quarter of theirs; with whole tables they
// ask the owner for all of them; by columns they ask each rank for all, a quarter of each row.
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
      if (node.op->name != exchange_rows_name) continue;
      const CollectiveWork work = collective_work(graph, node);
      all.push_back(
          choose_collective(CollectiveLibrary::messages, work, assumed_bytes_a_message).cost.bytes);
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
                AllOf(HasSubstr("deep:weight"), HasSubstr(kind), HasSubstr("needs the whole")));
  }
}

TEST(ShardTables, KindsThatRestOnWholeRows) {
  for (const std::string kind : {"rowwise_adagrad", "group_ftrl", "lamb", "adafactor"}) {
    EXPECT_THAT(refused({.keys = optimizers(ftrl, "kind=\"" + kind + "\"")}, {}, by_columns),
                AllOf(HasSubstr("deep:weight"), HasSubstr(kind), HasSubstr("needs whole rows"),
                      HasSubstr("shards its columns")));
  }
}

// A row of a table is one unit: its norm is that of all columns.
TEST(ShardTables, AdaptiveLimitsNeedWholeUnits) {
  const Case of{.keys = optimizers(ftrl, lazy_adam, {"optimizer.clip_adaptive=0.01"})};
  EXPECT_EQ(refused(of), "");
  EXPECT_EQ(refused(of, {}, whole_tables), "");
  EXPECT_THAT(refused(of, {}, by_columns),
              AllOf(HasSubstr("deep:weight"), HasSubstr("clip_adaptive needs whole output units"),
                    HasSubstr("shards its columns")));
}

TEST(ShardTables, FewerColumnsThanRanks) {
  const Case of{.keys = optimizers(ftrl, lazy_adam)};
  EXPECT_EQ(refused(of, {}, by_columns, 4), "");
  // Blocks of one column, and of two, of which the third rank would have none.
  for (const int ranks : {5, 3}) {
    EXPECT_THAT(
        refused(of, {}, by_columns, ranks),
        AllOf(HasSubstr("deep:weight"), HasSubstr("its columns cannot be sharded over the ranks"),
              HasSubstr("some of " + std::to_string(ranks) + " ranks would have none"),
              HasSubstr("remove `shard = \"columns\"` from it")));
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
      AllOf(HasSubstr("deep:weight"), HasSubstr("its columns cannot be sharded over the ranks"),
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
