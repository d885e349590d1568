// Whatever writes a parameter after its update, every copy that another program of the run reads
// has the new value: a 16-bit weight, one on another device, rows fetched ahead.
#include <cmath>

#include "engine/train/averages/weights_in_use.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/updates/parameter_choice.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using testing::Trained;
using Keys = std::vector<std::string>;

struct Writer {
  const char* name;
  Keys keys;
};

const std::vector<Writer> writers{
    {"update", {}},
    {"adam", {"optimizer.kind=adam", "optimizer.lr=0.05"}},
    {"clipped", {"optimizer.clip_norm=0.5", "optimizer.clip_adaptive=0.5"}},
    {"look-ahead in each step", {"optimizer.lookahead={k=1, alpha=0.5}"}},
    {"look-ahead in every second", {"optimizer.lookahead={k=2, alpha=0.7}", "optimizer.kind=adam"}},
    {"look-ahead of one layer", {"optimizer.lookahead={at=\"fc1\", k=2, alpha=0.5}"}},
    {"update of a whole tensor", {"optimizer.kind=lamb", "optimizer.lr=0.05"}},
    {"update of factored states", {"optimizer.kind=adafactor", "optimizer.lr=0.05"}},
    {"update of orthogonal steps",
     {"optimizer.groups=[{at=\"*:weight\", kind=\"muon\", lr=0.05}]"}},
    {"evaluation of schedule-free weights", {"optimizer.kind=schedule_free_adamw"}},
    {"update of whole rows", {"optimizer.groups=[{at=\"*:weight\", kind=\"group_ftrl\", lr=0.1}]"}},
    {"rows that stay", {"parameters.fixed_rows=[{at=\"fc2:weight\", rows=[1]}]"}},
    {"evaluation of an average", {"optimizer.ema={decay=0.5}", "eval.weights=ema"}},
    {"evaluation of the mean",
     {"optimizer.swa={start=\"1 steps\", every=\"1 steps\"}", "optimizer.lookahead={k=2}",
      "eval.weights=swa"}},
    {"thaw", {"parameters.freeze=[{at=\"fc1\", until=\"2 steps\"}]"}},
    {"thaw with look-ahead",
     {"parameters.freeze=[{at=\"fc1\", until=\"2 steps\"}]", "optimizer.lookahead={k=2}"}},
    {"freeze", {"parameters.freeze=[{at=\"fc1\", from=\"2 steps\"}]"}},
};

struct Home {
  const char* name;
  int param, state;  // devices
};
const std::vector<Home> homes{
    {"all on the accelerator", 1, 1}, {"masters on the host", 1, 0}, {"all on the host", 0, 0}};

class CopiesTest : public testing::TrainingRun {
 protected:
  void SetUp() override {
    train_ = testing::small_data(22, 3);
    eval_ = testing::small_data(7, 9);
  }

  RunParts placed_parts(const Home& home, const Keys& keys) {
    RunParts parts = engine_.parts();
    parts.devices = machine_.devices;
    testing::own_model(parts).make_placement = [home](const Graph& graph) {
      Placement placement;
      placement.devices = {"cpu", "emulated:0"};
      for (const Node& node : graph.nodes) {
        const int device = node.phase == Phase::update ? home.state : 1;
        placement.nodes.push_back({device, "test"});
      }
      for (const State& state : graph.states) {
        const bool is_parameter = state.kind == StateKind::parameter;
        placement.states.push_back({home.state, is_parameter ? home.param : home.state, "test"});
      }
      return placement;
    };
    parts.options.lower.compute = DType::bfloat16;
    parts.options.lower.without_weights =
        updated_by_rows(placed_config(keys), parts.model->forward({8, true}));
    return parts;
  }

  RunConfig placed_config(const Keys& keys) const {
    RunConfig config = testing::small_config(folder_.path(), keys);
    config.data->shuffle.kind = ShuffleConfig::Kind::none;
    return config;
  }

  Trained train(const Keys& keys, RunParts parts) {
    Trained run;
    testing::Hooks hooks;
    hooks.on_progress = [&](const TrainingProgress& p) {
      (p.evaluation ? run.evaluations : run.steps).push_back(p);
    };
    run.training = std::make_unique<Training>(placed_config(keys), std::move(parts),
                                              DataSets{train_, eval_}, hooks.observer());
    run.result = run.training->run("", {});
    EXPECT_THAT(machine_.monitor->order_errors(), ::testing::IsEmpty());
    return run;
  }

  /// The evaluation of the run's last weights in programs of their own.
  double evaluated_alone(const Trained& run, const Keys& keys, const RunParts& parts,
                         std::uint64_t step) {
    const RunConfig config = placed_config(keys);
    CheckpointContent content =
        read_checkpoint(run.result.run_dir + "/checkpoints/" + checkpoint_name(step));
    use_weights(content, config.eval.weights, run.result.run_dir);
    content.optimizer.clear();
    StateStore states;
    Evaluation evaluation(config, parts, eval_, states, make_arenas());
    restore_states(states, content);
    return evaluation.run()->at(0).second;
  }

  /// The first state whose 16-bit weight is not its rounded master; "" if there is none.
  static std::string stale_copy(const StateStore& states) {
    for (const std::string& name : states.names()) {
      if (!states.has(name + "/weight")) continue;
      const HostTensor weight = states.read(name + "/weight"),
                       master = states.read(name).converted(weight.dtype());
      if (std::memcmp(weight.data(), master.data(), master.bytes()) != 0) return name;
    }
    return "";
  }

  testing::Machine machine_{1};
};

// Evaluations during a run, in programs of their own, match the checkpoints of their steps.
TEST_F(CopiesTest, AreReadByEvaluationsAsTheyWereWritten) {
  std::size_t next = 0;
  for (const Home& home : homes) {
    for (const Writer& writer : writers) {
      const char* micro = ++next % 2 == 0 ? "micro_batch=8" : "micro_batch=4";
      SCOPED_TRACE(std::string(writer.name) + ", " + home.name + ", " + micro);
      Keys keys{"steps=4", "eval.every=\"1 steps\"", "checkpoint.every=\"1 steps\"",
                "checkpoint.keep=0", micro};
      keys.insert(keys.end(), writer.keys.begin(), writer.keys.end());
      const RunParts parts = placed_parts(home, keys);
      const Trained run = train(keys, parts);
      ASSERT_EQ(run.evaluations.size(), 4u);
      for (const std::uint64_t step : {2, 4}) {
        EXPECT_EQ(Trained::value(run.evaluations[step - 1], "loss"),
                  evaluated_alone(run, keys, parts, step))
            << "step " << step;
      }
    }
  }
}

// The next step's forward pass, which is in another program if there are micro-batches.
TEST_F(CopiesTest, AreReadByTheNextStepAsTheyWereWritten) {
  for (const Home& home : homes) {
    for (const Writer& writer : writers) {
      if (std::string(writer.name).starts_with("evaluation")) continue;
      SCOPED_TRACE(std::string(writer.name) + ", " + home.name);
      Keys keys{"steps=4", "micro_batch=4"};
      keys.insert(keys.end(), writer.keys.begin(), writer.keys.end());
      RunParts parts = placed_parts(home, keys);
      const Trained narrow = train(keys, parts);
      EXPECT_EQ(stale_copy(narrow.training->states()), "");
      parts.options.lower.compute = DType::float32;
      const Trained exact = train(keys, parts);
      for (std::size_t i = 0; i < exact.steps.size(); ++i) {
        const double expected = Trained::value(exact.steps[i], "loss");
        EXPECT_NEAR(Trained::value(narrow.steps[i], "loss"), expected, 0.02 * expected)
            << "step " << i + 1;
      }
    }
  }
}

}  // namespace
}  // namespace tandem
