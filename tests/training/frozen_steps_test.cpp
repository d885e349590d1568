// Parameters that thaw and freeze against PyTorch, whose optimizers count the steps of each
// parameter separately (tests/scripts/frozen_steps.py): whole, in micro-batches, on an accelerator,
// with steps that a loss scale skips.
#include <cmath>

#include "engine/formats/files.h"
#include "engine/graph/builder.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/updates/missed_steps.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/folders.h"
#include "tests/harness/program_check.h"
#include "tests/training/ranks/graph_training.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using testing::Trained;
using Json = nlohmann::json;
using Keys = std::vector<std::string>;

constexpr std::int64_t frozen_inputs = 4, frozen_hidden = 5, frozen_outputs = 3, table_rows = 6,
                       frozen_samples = 24;

Graph thawing_network(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators);
  g.set_scope({"net", Phase::forward, {}});
  const ValueId x = g.input("x", {DType::float32, {batch, frozen_inputs}});
  const ValueId ids = g.input("ids", {DType::int64, {batch}});
  const ValueId w1 = g.state(testing::sine_parameter("a.weight", {frozen_inputs, frozen_hidden}));
  const ValueId b1 = g.state(testing::sine_parameter("a.bias", {frozen_hidden}));
  const ValueId table =
      g.state(testing::sine_parameter("table.weight", {table_rows, frozen_hidden}));
  const ValueId w2 = g.state(testing::sine_parameter("b.weight", {frozen_outputs, frozen_hidden}));
  const ValueId rows = g.add_node("Gather", {table, ids}, {{"axis", std::int64_t{0}}});
  const ValueId h = g.add_node("Relu", {g.add(g.add(g.matmul(x, w1), b1), rows)});
  g.output("y", g.matmul(h, g.transpose(w2, {1, 0})));
  return g.finish();
}

/// With `overflows`, samples 8 to 15 make gradients that are not finite under the test's scale.
std::shared_ptr<const DataSource> thawing_data(bool overflows) {
  HostTensor x(TensorType{DType::float32, {frozen_samples, frozen_inputs}}),
      t(TensorType{DType::float32, {frozen_samples, frozen_outputs}}),
      ids(TensorType{DType::int64, {frozen_samples}});
  for (std::int64_t i = 0; i < x.type().elements(); ++i) {
    x.as<float>()[i] = static_cast<float>(std::cos(0.7 * static_cast<double>(i)));
    const std::int64_t sample = i / frozen_inputs;
    if (overflows && sample >= 8 && sample < 16) x.as<float>()[i] *= 1000;
  }
  for (std::int64_t i = 0; i < t.type().elements(); ++i)
    t.as<float>()[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  for (std::int64_t i = 0; i < frozen_samples; ++i) ids.as<std::int64_t>()[i] = 5 * i % table_rows;
  return make_array_source({{"x", x}, {"t", t}, {"ids", ids}});
}

const Json& frozen_script() {
  static const Json json =
      Json::parse(read_file(source_folder() + "/tests/data/frozen_steps.json"));
  return json;
}

class FrozenStepsTest : public testing::TrainingRun {
 protected:
  Trained train(const Keys& keys, bool overflows, bool on_accelerator = false,
                std::uint64_t stop_after = 0, const std::string& resume = "") {
    Keys all{"steps=12",
             "loss.terms=[{name=\"loss\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
             "parameters.freeze=[{at=\"a:weight\", until=\"5 steps\"}, {at=\"a:bias\", from=\"9 "
             "steps\"}, {at=\"table\", until=\"3 steps\"}]"};
    all.insert(all.end(), keys.begin(), keys.end());
    RunConfig config = testing::small_config(folder_.path(), all);
    config.data->shuffle.kind = ShuffleConfig::Kind::none;
    RunParts parts = engine_.parts();
    testing::own_model(parts).make_graph = [this](const ForwardKey& key) {
      const std::int64_t batch = key.samples;
      return thawing_network(engine_.operators, batch);
    };
    if (on_accelerator) {
      parts.devices = machine_.devices;
      testing::own_model(parts).make_placement = [](const Graph& graph) {
        Placement placement;
        placement.devices = {"cpu", "emulated:0"};
        placement.nodes.assign(graph.nodes.size(), {1, "test"});
        placement.states.assign(graph.states.size(), {1, 1, "test"});
        return placement;
      };
    }
    Trained trained;
    testing::Hooks hooks;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) { done = p.step; };
    hooks.stop_requested = [&] { return stop_after > 0 && done >= stop_after; };
    trained.training = std::make_unique<Training>(
        std::move(config), parts, DataSets{thawing_data(overflows), nullptr}, hooks.observer());
    trained.result = trained.training->run(resume, {});
    return trained;
  }

  static void expect_states(const Trained& trained, const Json& states) {
    const StateStore& found = trained.training->states();
    for (const auto& [name, values] : states.items()) {
      if (!found.has(name)) {
        ADD_FAILURE() << name;
        continue;
      }
      const HostTensor state = found.read(name);
      const auto expected = values.get<std::vector<double>>();
      ASSERT_EQ(state.type().elements(), static_cast<std::int64_t>(expected.size())) << name;
      double largest = 0;
      for (const double number : expected) largest = std::max(largest, std::abs(number));
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(state.number(static_cast<std::int64_t>(i)), expected[i], 2e-5 * largest + 1e-9)
            << name << " " << i;
    }
  }

  testing::Machine machine_{1};
};

// A scale under which normal gradients are far from float32's limits, and 1000 times as large ones
// have squares beyond them; products stay in 32 bits.
const Keys scaled{"precision.compute=float16", "precision.keep_float32=[\"**\"]",
                  "precision.loss_scale=1e17"};

TEST_F(FrozenStepsTest, AsPyTorch) {
  for (const Json& one : frozen_script()["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>() + (one["skipped"].get<bool>() ? ", skipped" : ""));
    const bool skips = one["skipped"];
    Keys keys = one["keys"];
    if (skips) keys.insert(keys.end(), scaled.begin(), scaled.end());
    const Trained whole = train(keys, skips);
    expect_states(whole, one["states"]);
    if (skips) {
      EXPECT_EQ(whole.training->states().read(skipped_steps_state).number(0), 4);
    }
    expect_states(train(keys, skips, true), one["states"]);
    keys.push_back("micro_batch=4");
    expect_states(train(keys, skips), one["states"]);
  }
}

// A run may resume from any step: before the first thaw, at one, between two, after a freeze.
TEST_F(FrozenStepsTest, AResumedRunCountsOn) {
  for (const Json& one : frozen_script()["cases"]) {
    const std::string name = one["name"];
    const bool skips = one["skipped"];
    if (name != "adam" && name != "lazy_adam") continue;
    Keys keys = one["keys"];
    if (skips) keys.insert(keys.end(), scaled.begin(), scaled.end());
    const Trained whole = train(keys, skips);
    for (const std::uint64_t stop : {1, 2, 3, 4, 5, 6, 8, 9, 10}) {
      SCOPED_TRACE(name + ", resumed at " + std::to_string(stop));
      const Trained stopped = train(keys, skips, false, stop);
      const Trained resumed = train(keys, skips, false, 0, stopped.result.run_dir);
      EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
    }
  }
}

class MissedStepsTest : public ::testing::Test {
 protected:
  /// Steps missed by the parameters that are trained from here on, if these rules hold.
  MissedStepCounts change(const std::vector<bool>& thawed, std::int64_t taken) {
    TrainingRequest request;
    request.config = &config_;
    request.thawed = thawed;
    return missed_.change(graph_, request, taken);
  }

  const OperatorSet operators_ = all_operators();
  const Graph graph_ = testing::small_network(operators_, 8);
  const RunConfig config_ =
      testing::small_config("", {"parameters.freeze=[{at=\"fc1:weight\"}, {at=\"fc2:bias\"}]"});
  MissedSteps missed_;
};

// Missed steps of a parameter that freezes again add up, as with gradients that are None.
TEST_F(MissedStepsTest, StandStillWhileAParameterIsFrozen) {
  EXPECT_EQ(change({false, true}, 0), MissedStepCounts());
  EXPECT_EQ(change({true, true}, 5), (MissedStepCounts{{"fc1.weight", 5}}));
  EXPECT_EQ(change({false, false}, 8), MissedStepCounts());
  EXPECT_EQ(missed_.after(8), (MissedStepCounts{{"fc1.weight", 5}}));
  EXPECT_EQ(missed_.after(10), (MissedStepCounts{{"fc1.weight", 7}, {"fc2.bias", 2}}));
  EXPECT_EQ(change({true, true}, 12), (MissedStepCounts{{"fc1.weight", 9}, {"fc2.bias", 4}}));
  EXPECT_EQ(missed_.after(20), (MissedStepCounts{{"fc1.weight", 9}, {"fc2.bias", 4}}));
}

// A run without parameters.freeze that gets a rule on resume.
TEST_F(MissedStepsTest, BeginWithTheFirstRule) {
  missed_.restore({});
  EXPECT_EQ(change({false, true}, 10), MissedStepCounts());
  EXPECT_EQ(change({true, true}, 12), (MissedStepCounts{{"fc1.weight", 2}}));
}

TEST_F(MissedStepsTest, GoOnFromACheckpoint) {
  missed_.restore(MissedStepCounts{{"fc1.weight", 7}, {"fc2.bias", 2}});
  EXPECT_EQ(change({false, true}, 10), (MissedStepCounts{{"fc2.bias", 2}}));
  EXPECT_EQ(change({true, true}, 12), (MissedStepCounts{{"fc1.weight", 9}, {"fc2.bias", 2}}));
}

}  // namespace
}  // namespace tandem
