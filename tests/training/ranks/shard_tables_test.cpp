// Tables that ranks share by rows: a wide and a deep table with the same ids, and other lookups of
// the deep one. One process with whole tables is the reference; the ranks are threads.
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
#include "engine/runtime/program.h"
#include "engine/training/config/config_value.h"
#include "engine/training/data/loader.h"
#include "engine/training/training_graph.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t rows = 2003, columns = 4, fields = 5;
constexpr int steps = 4;

/// What is looked up besides the ids that the two tables have in common.
enum class More { nothing, other_ids, ids_of_a_lookup };

Graph forward_graph(const OperatorSet& operators, std::int64_t samples, More more) {
  GraphBuilder b(operators);
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    State state;
    state.name = name;
    state.path = name;
    state.path.replace(name.find('.'), 1, ":");
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, shape});
    double i = 0;
    for (float& number : state.start.as<float>())
      number = static_cast<float>(0.3 * std::sin(i += 1.3));
    return b.state(std::move(state));
  };
  const Attributes first_axis{{"axis", std::int64_t{0}}};
  const ValueId ids = b.input("ids", {DType::int64, {samples, fields}});
  const ValueId deep_table = parameter("deep.weight", {rows, columns});
  b.set_scope({"wide", Phase::forward, {}});
  const ValueId wide = b.add_node("EmbeddingBag", {parameter("wide.weight", {rows, 1}), ids});
  b.set_scope({"deep", Phase::forward, {}});
  const ValueId deep = b.add_node("Gather", {deep_table, ids}, first_axis);
  std::vector<ValueId> parts{b.reshape(deep, {samples, fields * columns})};
  if (more == More::other_ids) {
    // Other ids of int32, from the end, absent or twice, with weights.
    const ValueId others = b.input("others", {DType::int32, {samples, 2}});
    b.set_scope({"bag", Phase::forward, {}});
    const ValueId weights = b.filled(0.5, {DType::float32, {samples, 2}});
    parts.push_back(b.add_node("EmbeddingBag", {deep_table, others, weights}));
    b.set_scope({"again", Phase::forward, {}});
    parts.push_back(b.reshape(b.add_node("Gather", {deep_table, ids}, first_axis),
                              {samples, fields * columns}));
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

std::int64_t id_of(Ids kind, std::int64_t position) {
  std::mt19937_64 random(static_cast<std::uint64_t>(position) * 7919 + 13);
  if (kind == Ids::of_few_owners) return static_cast<std::int64_t>(random() % 20) * 60;
  if (kind == Ids::spread) return static_cast<std::int64_t>(random() % rows);
  const double uniform = std::uniform_real_distribution<double>(0, 1)(random);
  return std::min(static_cast<std::int64_t>(std::pow(double{rows}, uniform)), rows) - 1;
}

struct Case {
  std::vector<std::string> keys;
  std::int64_t batch = 24, micro_batch = 24;
  More more = More::nothing;
  Ids ids = Ids::spread;
  int device = 0;
  std::int64_t wrong_id = 0;  // where it is not 0, in place of one of them
  bool is_sharded = true;     // on several ranks
};

const Shardings by_rows{{"wide.weight", Sharding::rows}, {"deep.weight", Sharding::rows}};

RunConfig config_of(const Case& of) {
  std::vector<std::string> keys{
      "model=\"m.onnx\"", "batch_size=" + std::to_string(of.batch),
      "loss.terms=[{name=\"mse\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
      "optimizer.lr=0.05"};
  keys.insert(keys.end(), of.keys.begin(), of.keys.end());
  return parse_run_config("steps = 1\n", "train.toml", keys);
}

struct Trained {
  std::vector<float> losses;
  std::map<std::string, HostTensor> states;
  std::map<std::string, StateShard> shards;
  float norm = 0;
  std::optional<Program::StepError> error;
};

TrainingGraph training_graph(const OperatorSet& operators, const RunConfig& config, const Case& of,
                             MicroBatchKind kind, const RankPlace& place) {
  const SampleShare share = share_of(of.micro_batch, place);
  TrainingRequest request;
  request.config = &config;
  request.kind = kind;
  request.samples = {share.count, of.batch};
  request.fields = {{"t", {DType::float32, {share.count, 1}}}};
  if (place.ranks > 1) {
    request.ranks = {place.ranks, share.count, share_of(of.micro_batch, {0, place.ranks}).count,
                     place.rank};
  }
  if (of.is_sharded) request.shards = by_rows;
  return build_training_graph(operators, forward_graph(operators, share.count, of.more), request);
}

Trained train(const Case& of, const RankPlace& place = {}, RankGroup* group = nullptr) {
  const OperatorSet operators = all_operators();
  const RunConfig config = config_of(of);
  Machine machine(of.device);
  for (Device* device : machine.devices) {
    if (group != nullptr) device->join(group->make_communicator());
  }
  StateStore states;
  const auto arenas = make_arenas();
  const SampleShare share = share_of(of.micro_batch, place);
  const std::int64_t count = of.batch / of.micro_batch;
  const auto kind_of = [&](std::int64_t i) {
    if (count == 1) return MicroBatchKind::whole;
    return i == 0           ? MicroBatchKind::first
           : i + 1 == count ? MicroBatchKind::last
                            : MicroBatchKind::middle;
  };
  std::map<MicroBatchKind, std::unique_ptr<Program>> programs;
  for (std::int64_t i = 0; i < count; ++i) {
    const TrainingGraph training = training_graph(operators, config, of, kind_of(i), place);
    verify(training.graph);
    Placement placement;
    for (const Device* device : machine.devices) placement.devices.push_back(device->name());
    placement.nodes.resize(training.graph.nodes.size(), {of.device, "test"});
    placement.states.resize(training.graph.states.size(), {of.device, of.device, "test"});
    programs[kind_of(i)] = std::make_unique<Program>(
        training.graph, placement, operators, machine.devices, states, arenas, ProgramOptions{});
  }
  Trained result;
  std::uint64_t ticket = 0;
  for (int step = 0; step < steps; ++step) {
    float loss = 0;
    for (std::int64_t i = 0; i < count; ++i, ++ticket) {
      Program& program = *programs.at(kind_of(i));
      const Graph& graph = program.lowered().graph;
      const std::int64_t first = i * of.micro_batch + share.first + 100 * step;
      for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
        void* slot = program.input_slot(static_cast<int>(k), ticket);
        const std::string& name = graph.inputs[k].name;
        if (name == "ids") {
          for (std::int64_t e = 0; e < share.count * fields; ++e) {
            const std::int64_t position = first * fields + e;
            const bool is_wrong = of.wrong_id != 0 && position == fields;
            static_cast<std::int64_t*>(slot)[e] = is_wrong ? of.wrong_id : id_of(of.ids, position);
          }
        } else if (name == "others") {
          for (std::int64_t e = 0; e < share.count * 2; ++e) {
            const std::int64_t position = first * 2 + e;
            static_cast<std::int32_t*>(slot)[e] =
                position % 5 == 0 ? absent_id<std::int32_t>
                                  : static_cast<std::int32_t>(-1 - position * 31 % 40);
          }
        } else if (name == "t") {
          for (std::int64_t e = 0; e < share.count; ++e)
            static_cast<float*>(slot)[e] = static_cast<float>(std::sin(double(first + e)));
        } else if (name == step_input) {
          *static_cast<std::int64_t*>(slot) = step + 1;
        } else if (name == stop_flag) {
          *static_cast<float*>(slot) = 0;
        } else {
          *static_cast<float*>(slot) = 0.05f;  // the rate
        }
      }
      ErrorWord word;
      StepContext context;
      context.step = static_cast<std::uint64_t>(step) + 1;
      context.error = &word;
      program.run(context, ticket);
      if (!result.error) result.error = program.error_in(word);
      for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
        const float value = *static_cast<const float*>(program.output(static_cast<int>(o), ticket));
        if (graph.outputs[o].name == "loss") loss += value;
        if (graph.outputs[o].name == "gradient_norm") result.norm = value;
      }
    }
    result.losses.push_back(loss);
  }
  machine.synchronize();
  for (const std::string& name : states.names()) {
    // Within a step, and dense sums of rows are of each rank.
    if (name.ends_with("/gradient_sum") || name.ends_with("/touched_rows")) continue;
    result.states.emplace(name, states.read(name));
    if (const StateShard* shard = states.shard(name)) result.shards.emplace(name, *shard);
  }
  EXPECT_THAT(machine.monitor->order_errors(), ::testing::IsEmpty());
  return result;
}

std::vector<Trained> train_on(int ranks, const Case& of) {
  std::vector<Trained> all(static_cast<std::size_t>(ranks));
  on_rank_threads(ranks, [&](RankGroup& group) {
    all[static_cast<std::size_t>(group.rank())] = train(of, {group.rank(), ranks}, &group);
  });
  return all;
}

/// The whole of a state, of the ranks' parts where it is shared out.
std::vector<double> assembled(const std::vector<Trained>& all, const std::string& name) {
  const auto ranks = static_cast<std::int64_t>(all.size());
  const auto shard = all[0].shards.find(name);
  const auto& own = all[0].states.at(name);
  std::vector<double> numbers;
  if (shard == all[0].shards.end()) {
    for (std::int64_t i = 0; i < own.type().elements(); ++i) numbers.push_back(own.number(i));
    return numbers;
  }
  const TensorType& whole = shard->second.whole;
  const std::int64_t width = whole.elements() / whole.shape[0];
  for (std::int64_t row = 0; row < whole.shape[0]; ++row) {
    const HostTensor& part = all[static_cast<std::size_t>(row % ranks)].states.at(name);
    for (std::int64_t c = 0; c < width; ++c)
      numbers.push_back(part.number(row / ranks * width + c));
  }
  return numbers;
}

void expect_as_alone(const Case& of, std::initializer_list<int> counts) {
  const Trained alone = train(of);
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const std::vector<Trained> all = train_on(ranks, of);
    for (const Trained& one : all) {
      EXPECT_EQ(one.losses, all[0].losses);
      EXPECT_NEAR(one.norm, alone.norm, 1e-6 * std::max(1.0f, alone.norm));
      for (int step = 0; step < steps; ++step)
        EXPECT_NEAR(one.losses[step], alone.losses[step], 1e-6) << "step " << step + 1;
      for (const auto& [name, shard] : all[0].shards) {
        EXPECT_TRUE(one.shards.contains(name)) << name;
        EXPECT_EQ(one.states.at(name).type(), shard.part()) << name;
      }
    }
    for (const auto& [name, expected] : alone.states) {
      ASSERT_TRUE(all[0].states.contains(name)) << name;
      const std::vector<double> whole = assembled(all, name);
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
  const std::vector<Trained> first = train_on(3, of), second = train_on(3, of);
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

// Ids cross once for both tables; rows of each cross, and so do their gradients.
TEST(ShardTables, TablesWithTheSameIdsAskOnce) {
  const OperatorSet operators = all_operators();
  const Case of{.keys = optimizers(ftrl, lazy_adam), .more = More::other_ids};
  const auto collectives = [&](const Case& each) {
    const RunConfig config = config_of(each);
    std::map<std::string, int> count;
    for (const Node& node :
         training_graph(operators, config, each, MicroBatchKind::whole, {0, 4}).graph.nodes) {
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

TEST(ShardTables, IdsOfNoRowAreReportedAsOnOneProcess) {
  for (const std::int64_t wrong : {rows, -rows - 1, std::int64_t{1} << 40}) {
    const Case of{.keys = optimizers(ftrl, lazy_adam), .wrong_id = wrong};
    const Trained alone = train(of);
    ASSERT_TRUE(alone.error.has_value());
    const std::vector<Trained> all = train_on(2, of);
    ASSERT_TRUE(all[0].error.has_value());  // whose sample it is
    EXPECT_FALSE(all[1].error.has_value());
    EXPECT_EQ(all[0].error->kind, alone.error->kind);
    EXPECT_EQ(all[0].error->value, wrong);
    EXPECT_EQ(all[0].error->path, alone.error->path);
  }
}

std::string refused(const Case& of, const std::function<void(GraphBuilder&)>& change = {},
                    Shardings shards = by_rows) {
  const OperatorSet operators = all_operators();
  GraphBuilder g(operators, forward_graph(operators, 8, of.more));
  if (change) change(g);
  const RunConfig config = config_of(of);
  TrainingRequest request;
  request.config = &config;
  request.samples = {8, 8};
  request.fields = {{"t", {DType::float32, {8, 1}}}};
  request.ranks = {2, 8, 8, 0};
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
  EXPECT_THAT(refused(of, {}, {{"dense.weight", Sharding::rows}}),
              AllOf(HasSubstr("dense:weight"), HasSubstr("dense (MatMul)"), HasSubstr("shard")));
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

TEST(ShardTables, OneRankKeepsItsTables) {
  const Case of{.keys = optimizers(ftrl, lazy_adam)};
  const Trained alone = train(of);
  EXPECT_TRUE(alone.shards.empty());
  EXPECT_EQ(alone.states.at("deep.weight").shape(), (Shape{rows, columns}));
}

}  // namespace
}  // namespace tandem::testing
