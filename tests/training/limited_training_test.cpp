// Limits on gradients and averages of weights against PyTorch (tests/scripts/limited_training.py):
// in one process, in micro-batches, over ranks, under a loss scale, on the cpu and on an
// accelerator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/averages/average_rates.h"
#include "engine/train/updates/gradient_clipping.h"
#include "tests/harness/folders.h"
#include "tests/training/ranks/graph_training.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using testing::GraphTraining;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TrainedGraph;

constexpr std::int64_t inputs = 4, hidden = 5, outputs = 3;

const Json& limits_script() {
  static const Json json =
      Json::parse(read_file(source_folder() + "/tests/data/limited_training.json"));
  return json;
}

Graph limited_network(const OperatorSet& operators, std::int64_t samples) {
  GraphBuilder g(operators);
  g.set_scope({"net", Phase::forward, {}});
  const ValueId x = g.input("x", {DType::float32, {samples, inputs}});
  const ValueId w1 = g.state(testing::sine_parameter("a.weight", {inputs, hidden}));
  const ValueId b1 = g.state(testing::sine_parameter("a.bias", {hidden}));
  const ValueId w2 = g.state(testing::sine_parameter("b.weight", {outputs, hidden}));
  const ValueId h = g.add_node("Relu", {g.add(g.matmul(x, w1), b1)});
  g.output("y", g.matmul(h, g.transpose(w2, {1, 0})));
  return g.finish();
}

GraphTraining training_of(std::vector<std::string> keys, int steps) {
  GraphTraining of;
  of.keys = std::move(keys);
  of.keys.insert(of.keys.begin(), {"optimizer.kind=sgd", "optimizer.momentum=0.9"});
  of.steps = steps;
  of.outputs = outputs;
  of.forward = limited_network;
  of.feed = [config = testing::config_of(of)](const std::string& name, std::int64_t first,
                                              std::int64_t samples, void* slot) {
    auto* const to = static_cast<float*>(slot);
    const AverageRates rates(config.optimizer, {5, 1000});
    for (const Average average : {Average::ema, Average::swa, Average::lookahead}) {
      if (name == std::string("optimizer.") + average_names[static_cast<int>(average)])
        *to = static_cast<float>(rates.of(average, first / 100 + 1));
    }
    if (name != "x") return;
    for (std::int64_t i = 0; i < samples * inputs; ++i)
      to[i] = static_cast<float>(std::cos(0.7 * static_cast<double>(first * inputs + i)));
  };
  return of;
}

void expect_states(const TrainedGraph& found, const Json& states) {
  EXPECT_FALSE(found.error);
  for (const auto& [name, values] : states.items()) {
    ASSERT_TRUE(found.states.count(name)) << name;
    const HostTensor& state = found.states.at(name);
    const auto expected = values.get<std::vector<double>>();
    ASSERT_EQ(state.type().elements(), static_cast<std::int64_t>(expected.size())) << name;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(state.number(static_cast<std::int64_t>(i)), expected[i], 2e-6)
          << name << " " << i;
  }
}

TEST(LimitedTraining, IsPyTorchs) {
  for (const Json& one : limits_script()["cases"]) {
    SCOPED_TRACE(one["name"]);
    GraphTraining of = training_of(one["keys"], one["steps"]);
    expect_states(testing::train_graph(of), one["states"]);
    of.device = 1;
    expect_states(testing::train_graph(of), one["states"]);
  }
}

TEST(LimitedTraining, IsTheSameInMicroBatchesAndOverRanks) {
  for (const Json& one : limits_script()["cases"]) {
    SCOPED_TRACE(one["name"]);
    GraphTraining of = training_of(one["keys"], one["steps"]);
    for (const TrainedGraph& rank : testing::train_graph_on(3, of))
      expect_states(rank, one["states"]);
    of.micro_batch = 4;
    expect_states(testing::train_graph(of), one["states"]);
    for (const TrainedGraph& rank : testing::train_graph_on(2, of))
      expect_states(rank, one["states"]);
  }
}

TEST(LimitedTraining, IsTheSameUnderALossScale) {
  for (const Json& one : limits_script()["cases"]) {
    SCOPED_TRACE(one["name"]);
    std::vector<std::string> keys = one["keys"];
    // A scale of the loss, with products of 32 bits.
    keys.insert(keys.end(), {"precision.compute=float16", "precision.keep_float32=[\"**\"]"});
    GraphTraining of = training_of(keys, one["steps"]);
    expect_states(testing::train_graph(of), one["states"]);
    of.device = 1;
    expect_states(testing::train_graph(of), one["states"]);
  }
}

// A table whose gradient comes as rows: those that no id names stay as they are, whatever is
// clipped.
Graph table_network(const OperatorSet& operators, std::int64_t samples) {
  GraphBuilder g(operators);
  g.set_scope({"net", Phase::forward, {}});
  const ValueId ids = g.input("ids", {DType::int64, {samples}});
  const ValueId table = g.state(testing::sine_parameter("t.weight", {400, 3}));
  g.output("y", g.add_node("Gather", {table, ids}, {{"axis", std::int64_t{0}}}));
  return g.finish();
}

GraphTraining table_training(const std::vector<std::string>& keys) {
  GraphTraining of;
  of.keys = keys;
  of.outputs = 3;
  of.forward = table_network;
  of.feed = [](const std::string&, std::int64_t first, std::int64_t samples, void* slot) {
    for (std::int64_t i = 0; i < samples; ++i)
      static_cast<std::int64_t*>(slot)[i] = (first + i) * 7 % 30 / 8;  // rows come several times
  };
  return of;
}

TEST(LimitedTraining, RowsWithoutAnIdStayAsTheyAre) {
  for (const char* kind : {"lazy_adam", "adam", "sgd"}) {
    for (const char* limit : {"clip_value=0.001", "clip_adaptive=0.01", "clip_norm=0.01"}) {
      SCOPED_TRACE(std::string(kind) + " " + limit);
      GraphTraining of = table_training(
          {std::string("optimizer.kind=") + kind, std::string("optimizer.") + limit});
      of.steps = 3;  // so that clipped steps of an element do not add up to nothing
      const TrainedGraph alone = testing::train_graph(of);
      const HostTensor start = testing::sine_parameter("t.weight", {400, 3}).start;
      const HostTensor& now = alone.states.at("t.weight");
      for (std::int64_t row = 0; row < 400; ++row) {
        const bool moved = now.number(3 * row) != start.number(3 * row);
        EXPECT_EQ(moved, row < 4) << row;
      }
      for (const int ranks : {1, 3}) {
        of.micro_batch = ranks == 1 ? 4 : 12;
        for (const TrainedGraph& rank : testing::train_graph_on(ranks, of)) {
          for (std::int64_t i = 0; i < 1200; ++i)
            EXPECT_NEAR(rank.states.at("t.weight").number(i), now.number(i), 2e-6) << i;
        }
      }
    }
  }
}

// Four ids name one row: clip_value limits the sum of their gradients.
TEST(LimitedTraining, TheSumOfARowIsClipped) {
  GraphTraining of = table_training({"optimizer.kind=sgd", "optimizer.clip_value=0.001"});
  of.steps = 1;
  const TrainedGraph found = testing::train_graph(of);
  const HostTensor start = testing::sine_parameter("t.weight", {400, 3}).start;
  double most = 0;
  for (std::int64_t i = 0; i < 1200; ++i)
    most = std::max(most, std::abs(found.states.at("t.weight").number(i) - start.number(i)));
  EXPECT_NEAR(most, 0.05 * 0.001, 1e-7);
}

TEST(LimitedTraining, UnitsAreWhatReadersMakeOfThem) {
  const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  g.set_scope({"net", Phase::forward, {}});
  const ValueId x = g.input("x", {DType::float32, {2, 6, 8, 8}}),
                rows = g.input("rows", {DType::float32, {2, 7}}),
                ids = g.input("ids", {DType::int64, {2}});
  const auto add = [&](const char* name, const Shape& shape) {
    return g.state(testing::sine_parameter(name, shape));
  };
  const ValueId conv = add("conv.weight", {4, 6, 3, 3}), linear = add("linear.weight", {7, 5}),
                turned = add("turned.weight", {5, 7}), table = add("table.weight", {9, 5}),
                bias = add("bias.weight", {5});
  g.output(
      "c",
      g.add_node("Conv", {x, conv, {}},
                 {{"strides", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}, {"dilations", Ints{1, 1}}}));
  const ValueId made = g.add(g.matmul(rows, linear), g.matmul(rows, g.transpose(turned, {1, 0})));
  g.output("y", g.add(g.add(made, bias),
                      g.add_node("Gather", {table, ids}, {{"axis", std::int64_t{0}}})));
  const Graph graph = g.finish();
  const auto axes = [&](const char* name) { return axes_of_units(graph, *graph.find_state(name)); };
  EXPECT_THAT(axes("conv.weight"), ElementsAre(1, 2, 3));
  EXPECT_THAT(axes("linear.weight"), ElementsAre(0));
  EXPECT_THAT(axes("turned.weight"), ElementsAre(1));
  EXPECT_THAT(axes("table.weight"), ElementsAre(1));
  EXPECT_THAT(axes("bias.weight"), ElementsAre(0));
}

TEST(LimitedTraining, SaysWhatIsWrong) {
  const auto refusal = [](const std::string& key, const Shardings& shards = {}) -> std::string {
    GraphTraining of = training_of({key}, 1);
    of.shards = shards;
    try {
      const OperatorSet operators = all_operators();
      testing::training_graph(operators, testing::config_of(of), of, MicroBatchKind::whole, {0, 2});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refusal("optimizer.ema={at=\"c\"}"), HasSubstr("\"c\" matches no parameter"));
  EXPECT_THAT(refusal("log.norms=[\"c\"]"), HasSubstr("\"c\" matches no parameter"));
}

TEST(AverageRates, CountFromTheirStart) {
  RunConfig config = parse_run_config(
      "model = 'm.onnx'\nsteps = 40\n[optimizer]\nkind = 'sgd'\n"
      "ema = { decay = 0.99, start = '2 epochs', warmup = true }\n"
      "swa = { start = '3 epochs' }\nlookahead = { k = 4, alpha = 0.25 }\n",
      "/folder/train.toml");
  const AverageRates rates(config.optimizer, {5, 40});
  EXPECT_EQ(rates.of(Average::ema, 1), 1);
  EXPECT_EQ(rates.of(Average::ema, 10), 1);
  EXPECT_DOUBLE_EQ(rates.of(Average::ema, 11), 1 - 2.0 / 11);
  EXPECT_EQ(rates.of(Average::swa, 14), 1);
  EXPECT_EQ(rates.of(Average::swa, 15), 1);
  EXPECT_EQ(rates.of(Average::swa, 16), 0);
  EXPECT_DOUBLE_EQ(rates.of(Average::swa, 20), 0.5);
  EXPECT_DOUBLE_EQ(rates.of(Average::swa, 25), 1 / 3.0);
  EXPECT_EQ(rates.of(Average::lookahead, 3), 0);
  EXPECT_EQ(rates.of(Average::lookahead, 8), 0.25);
}

}  // namespace
}  // namespace tandem
