// With an accelerator the next step is launched before the last one's loss is read: a run has the
// same numbers and log, saves the same and ends alike as if each step were waited for.
#include <limits>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/steps/step_runner.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::metrics_of;
using testing::Trained;

/// Everything on the first accelerator of a machine.
Placement on_accelerator(const Graph& graph) {
  Placement placement;
  placement.devices = {"cpu", "emulated:0"};
  placement.nodes.assign(graph.nodes.size(), {1, "test"});
  placement.states.assign(graph.states.size(), {1, 1, "test"});
  return placement;
}

class AheadTest : public testing::TrainingRun {
 protected:
  RunParts parts(bool on_host) {
    RunParts parts = engine_.parts();
    if (on_host) return parts;
    parts.devices = machine_.devices;
    testing::own_model(parts).make_placement = on_accelerator;
    return parts;
  }

  /// Samples come in the order of their numbers.
  RunConfig config(const std::vector<std::string>& keys) const {
    RunConfig config = testing::small_config(folder_.path(), keys);
    config.data->shuffle.kind = ShuffleConfig::Kind::none;
    return config;
  }

  struct Ended {
    Trained run;
    std::string error;
    std::vector<std::string> kept;
  };
  /// `stop_at`: the run has to stop the `stop_at`-th time that it asks whether to; 0: never.
  Ended train(std::vector<std::string> keys, bool on_host = false, int stop_at = 0,
              const std::string& resume = "") {
    Ended ended;
    const std::string path = resume.empty() ? folder_ / ("run" + std::to_string(++runs_)) : resume;
    keys.push_back("run_dir=\"" + path + "\"");
    testing::Hooks hooks;
    hooks.on_progress = [&](const TrainingProgress& p) {
      (p.evaluation ? ended.run.evaluations : ended.run.steps).push_back(p);
    };
    hooks.on_message = [&](const std::string& text) { ended.run.messages.push_back(text); };
    int asked = 0;
    hooks.stop_requested = [&] { return stop_at > 0 && ++asked >= stop_at; };
    ended.error = testing::error_text([&] {
      ended.run.training = std::make_unique<Training>(config(keys), parts(on_host),
                                                      DataSets{train_, eval_}, hooks.observer());
      ended.run.result = ended.run.training->run(resume, {});
    });
    ended.run.result.run_dir = path;
    ended.kept = list_checkpoints(path + "/checkpoints");
    EXPECT_THAT(machine_.monitor->order_errors(), IsEmpty());
    return ended;
  }

  StepData step_data(const RunConfig& run) const {
    auto order = shuffled_order(train_->samples(), run.data->shuffle);
    return {train_, std::make_shared<OpenEpochs>(std::move(order), run.seed), nullptr};
  }

  testing::Machine machine_{1};
  int runs_ = 0;
};

TEST_F(AheadTest, TwoStepsAreUnderWayOnAnAcceleratorAlone) {
  for (const bool on_host : {false, true}) {
    const RunConfig run = config({"batch_size=11", "steps=9"});
    const RunLength length = run_length(run, train_->samples());
    StateStore states;
    StepRunner runner(run, parts(on_host), step_data(run), length, states, make_arenas());
    runner.start(0, {});
    runner.launch();
    EXPECT_EQ(runner.may_launch_ahead(), !on_host);
    for (std::uint64_t step = 1; step < 9; ++step) {
      if (!on_host) runner.launch();
      EXPECT_EQ(runner.in_flight(), on_host ? 1 : 2);
      if (!on_host) {
        EXPECT_FALSE(runner.may_launch_ahead());
      }
      EXPECT_EQ(runner.finish().step, step);
      if (on_host) runner.launch();
    }
    EXPECT_EQ(runner.finish().step, 9u);
    runner.stop();
  }
  EXPECT_THAT(machine_.monitor->order_errors(), IsEmpty());
}

TEST_F(AheadTest, PassesOfAStepAreWaitedFor) {
  const RunConfig run = config({"micro_batch=4"});
  StateStore states;
  StepRunner runner(run, parts(false), step_data(run), run_length(run, train_->samples()), states,
                    make_arenas());
  runner.start(0, {});
  runner.launch();
  EXPECT_FALSE(runner.may_launch_ahead());
  runner.finish();
  runner.stop();
}

// Where every step is logged, each is waited for. Epochs end with a smaller step, which has a
// program of its own.
TEST_F(AheadTest, NumbersAndLinesAreThoseOfStepsOneByOne) {
  eval_ = testing::small_data(7, 9);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"optimizer.momentum=0.9"},
        {"optimizer.kind=adam", "optimizer.clip_norm=0.5", "eval.every=\"5 steps\""},
        {"optimizer.kind=adam", "parameters.freeze=[{at=\"fc1\", until=\"5 steps\"}]"},
        {"precision.compute=bfloat16", "checkpoint.every=\"5 steps\""}}) {
    std::vector<std::string> keys{"steps=17", "eval.metrics=[\"accuracy\"]"};
    keys.insert(keys.end(), more.begin(), more.end());
    const Ended each = train(keys);
    keys.push_back("log.every=\"6 steps\"");
    const Ended ahead = train(keys);
    ASSERT_EQ(each.error, "no error");
    ASSERT_EQ(ahead.error, "no error");
    EXPECT_EQ(testing::difference(ahead.run.training->states(), each.run.training->states()), "")
        << more[0];
    EXPECT_EQ(ahead.run.result.loss, each.run.result.loss);
    EXPECT_EQ(ahead.kept, each.kept);
    std::vector<nlohmann::json> lines = metrics_of(each.run.result.run_dir);
    std::erase_if(lines, [](const nlohmann::json& line) {
      const int step = line["step"];
      return line.contains("lr") && step % 6 != 0 && step != 1 && step != 17;
    });
    EXPECT_EQ(metrics_of(ahead.run.result.run_dir), lines) << more[0];
  }
}

TEST_F(AheadTest, AStoppedRunGoesOnExactly) {
  const std::vector<std::string> keys{"steps=15", "optimizer.momentum=0.9",
                                      "log.every=\"100 steps\""};
  const Ended whole = train(keys);
  for (const int stop : {1, 2, 5, 9}) {
    const Ended stopped = train(keys, false, stop);
    EXPECT_TRUE(stopped.run.result.interrupted);
    EXPECT_EQ(stopped.kept.size(), 1u);
    EXPECT_LT(stopped.run.result.steps, 15u);
    const Ended resumed = train(keys, false, 0, stopped.run.result.run_dir);
    EXPECT_EQ(resumed.error, "no error");
    EXPECT_EQ(testing::difference(resumed.run.training->states(), whole.run.training->states()), "")
        << "stopped at " << stop;
    EXPECT_EQ(resumed.run.result.loss, whole.run.result.loss);
  }
}

// Neither the step with that loss nor the one launched after it is saved.
TEST_F(AheadTest, ADivergedLossEndsTheRunAtItsStep) {
  const std::vector<std::string> keys{"steps=50", "optimizer.lr=1e20",
                                      "checkpoint.every=\"2 steps\"", "checkpoint.keep=0",
                                      "log.every=\"100 steps\""};
  const Ended host = train(keys, true), ahead = train(keys);
  EXPECT_THAT(host.error, HasSubstr("the loss is not finite at step "));
  EXPECT_EQ(ahead.error, host.error);
  EXPECT_EQ(ahead.kept, host.kept);
  EXPECT_EQ(metrics_of(ahead.run.result.run_dir), metrics_of(host.run.result.run_dir));
}

TEST_F(AheadTest, ADivergedLossIsFoundWhereNothingWaits) {
  const std::vector<std::string> keys{"steps=50", "optimizer.lr=1e20", "log.every=\"100 steps\""};
  const Ended host = train(keys, true), ahead = train(keys);
  EXPECT_THAT(ahead.error, HasSubstr("the loss is not finite at step "));
  EXPECT_EQ(ahead.error, host.error);
  EXPECT_EQ(metrics_of(ahead.run.result.run_dir), metrics_of(host.run.result.run_dir));
  EXPECT_THAT(ahead.kept, IsEmpty());
}

/// 22 samples of which one has an infinity in one element.
std::shared_ptr<const DataSource> data_with_infinity(std::int64_t sample) {
  const std::shared_ptr<const DataSource> good = testing::small_data(22, 3);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < 22; ++i) all.push_back(i);
  HostTensor x(TensorType{DType::float32, {22, 6}}), y(TensorType{DType::int64, {22}});
  good->fill(good->find_field("x"), all, nullptr, x.data());
  good->fill(good->find_field("labels"), all, nullptr, y.data());
  x.as<float>()[6 * sample + 2] = std::numeric_limits<float>::infinity();
  return make_array_source({{"x", x}, {"labels", y}});
}

// The loss scale skipped the update, so the step after it is as good as any other and is saved.
TEST_F(AheadTest, AStepThatTheLossScaleLeftOutIsSavedWithTheOneBehindIt) {
  train_ = data_with_infinity(12);
  const std::vector<std::string> keys{"epochs=6", "precision.compute=float16",
                                      "log.every=\"100 steps\""};
  const Ended ended = train(keys);
  EXPECT_THAT(ended.error, AllOf(HasSubstr("the loss is not finite at step 2"),
                                 HasSubstr("memory:13: data.fields.x: an infinity in the data")));
  EXPECT_THAT(ended.kept, ElementsAre("step-00000003"));
  EXPECT_THAT(ended.run.messages,
              Contains(HasSubstr("step 3 is saved: --resume continues after it")));
  const Ended host = train(keys, true);
  EXPECT_THAT(host.kept, ElementsAre("step-00000002"));
}

/// Gives what another source gives, except for one sample.
class BrokenSource final : public DataSource {
 public:
  BrokenSource(std::shared_ptr<const DataSource> inner, std::int64_t broken)
      : inner_(std::move(inner)), broken_(broken) {}
  const std::vector<DataField>& fields() const override { return inner_->fields(); }
  std::int64_t samples() const override { return inner_->samples(); }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    for (const std::int64_t sample : samples) {
      if (sample == broken_ && augmentation != nullptr)
        throw Error(ErrorKind::data, Diagnostic{.message = "this sample cannot be read"});
    }
    inner_->fill(field, samples, augmentation, to);
  }
  std::string describe(int field, std::int64_t sample) const override {
    return inner_->describe(field, sample);
  }
  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    inner_->check_range(field, limit, ignore);
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    inner_->check_numbers(field, least, most, expected);
  }

 private:
  std::shared_ptr<const DataSource> inner_;
  std::int64_t broken_;
};

TEST_F(AheadTest, WhatWasTrainedBeforeABadSampleIsSaved) {
  train_ = std::make_shared<BrokenSource>(testing::small_data(64, 3), 45);
  const std::vector<std::string> keys{"steps=8", "log.every=\"100 steps\""};
  const Ended host = train(keys, true), ahead = train(keys);
  EXPECT_THAT(ahead.error, HasSubstr("this sample cannot be read"));
  EXPECT_EQ(ahead.error, host.error);
  EXPECT_THAT(ahead.kept, ElementsAre("step-00000005"));
  EXPECT_EQ(ahead.kept, host.kept);
}

// Computed by the model: only the kernel finds it.
TEST_F(AheadTest, ABadIndexIsNamedWithItsOwnStep) {
  HostTensor ids(TensorType{DType::float32, {64, 1}}), labels(TensorType{DType::int64, {64}});
  ids.as<float>()[29] = 20;
  train_ = make_array_source({{"ids", ids}, {"labels", labels}});
  const auto forward = [this](const ForwardKey& key) {
    const std::int64_t batch = key.samples;
    GraphBuilder g(engine_.operators);
    const ValueId ids = g.input("ids", {DType::float32, {batch, 1}});
    State state;
    state.name = state.path = "table";
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {4, 3}});
    g.set_scope({"lookup", Phase::forward, {}});
    const ValueId numbers = g.reshape(g.cast(g.add(ids, ids), DType::int64), {batch});
    g.output("logits", g.add_node("Gather", {g.state(std::move(state)), numbers}));
    return g.finish();
  };
  const RunConfig run = config({"steps=8", "log.every=\"100 steps\""});
  for (const bool on_host : {false, true}) {
    RunParts own = parts(on_host);
    testing::own_model(own).make_graph = forward;
    Training training(run, own, {train_, nullptr}, {});
    EXPECT_THAT(testing::error_text([&] { training.run("", {}); }),
                AllOf(HasSubstr("lookup"), HasSubstr("an index is out of range at step 4")))
        << on_host;
  }
}

}  // namespace
}  // namespace tandem
