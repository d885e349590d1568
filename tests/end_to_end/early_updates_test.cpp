// With the optimizer's state on the host, updates start there while the device still runs the
// backward pass; only clipping by the global norm makes them wait.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "api/timing/mixed_profile.h"
#include "tests/api/small_model.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t early_batch = 32;
constexpr int early_layers = 4, early_steps = 4;
// Widths of weights that have their own update, and of weights that share one.
constexpr std::int64_t large = 320, small = 64;

std::string perceptron(std::int64_t width) {
  SmallModel model;
  model.input("x", {early_batch, width}).output("logits", {early_batch, width});
  std::string in = "x";
  for (int layer = 0; layer < early_layers; ++layer) {
    const std::string name = "layer" + std::to_string(layer), last = name + ".sum";
    model.weight(name + ".weight", {width, width}, 0.05f);
    model.node("MatMul", name + ".matmul", {in, name + ".weight"},
               layer + 1 == early_layers ? "logits" : last);
    if (layer + 1 < early_layers) model.node("Relu", name + ".relu", {last}, name + ".out");
    in = name + ".out";
  }
  return model.bytes();
}

/// Times of one step, in seconds on a clock.
struct Ends {
  double first_update = 1e30, last_backward = 0;
};

Ends ends_of(const Program& program, const std::vector<TraceSpan>& trace, int step, bool real) {
  const Plan& plan = program.plan();
  const std::vector<Launch> launches = api::spanned_launches(program);
  Ends ends;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Queue& queue = plan.queues[launches[i].queue];
    const Instruction& instruction = queue.instructions[launches[i].index];
    if (instruction.kind != Instruction::Kind::run) continue;
    const Node& node = program.lowered().graph.node(instruction.node);
    const TraceSpan& span = trace[launches.size() * static_cast<std::size_t>(step) + i];
    if (node.phase == Phase::backward && queue.device == 1)
      ends.last_backward = std::max(ends.last_backward, real ? span.real_end : span.end);
    if (node.phase == Phase::update && queue.device == 0 && node.op->name.ends_with("Update"))
      ends.first_update = std::min(ends.first_update, real ? span.real_start : span.start);
  }
  return ends;
}

class EarlyUpdatesTest : public ::testing::TestWithParam<std::int64_t> {
 protected:
  EarlyUpdatesTest() {
    const std::int64_t width = GetParam();
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << perceptron(width);
    std::ofstream(folder_ / "policy.toml")
        << "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" }, { at = \"**:*\", state = \"cpu\" "
           "} ]\n"
           "[devices]\ngpu = { use = \"emulated:0\", memory = \"64MiB\" }\n";
    HostTensor x(TensorType{DType::float32, {early_batch, width}});
    int i = 0;
    for (float& value : x.as<float>()) value = static_cast<float>(i++ % 13 - 6) / 6;
    HostTensor labels(TensorType{DType::int64, {early_batch}});
    for (std::int64_t& label : labels.as<std::int64_t>()) label = i++ % 10;
    feeds_ = {{"x", std::move(x)}, {"labels", std::move(labels)}};
  }

  /// The times of each step after the first, on the virtual clock.
  std::vector<Ends> run(std::vector<std::string> settings) {
    settings.insert(settings.end(),
                    {"policy=\"" + (folder_ / "policy.toml") + "\"", "optimizer.kind=adamw",
                     "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", "
                     "logits=\"logits\", labels=\"labels\"}]"});
    PlacedTraining training(folder_ / "model.onnx", early_batch, settings, feeds_);
    training.monitor().start_trace(100000);
    for (int step = 0; step < early_steps; ++step) training.step(feeds_);
    training.synchronize();
    EXPECT_EQ(training.monitor().order_errors(), std::vector<std::string>());
    const std::vector<TraceSpan> trace = training.monitor().trace();
    const Program& program = training.program();
    EXPECT_EQ(trace.size(), api::spanned_launches(program).size() * early_steps);
    std::vector<Ends> all;
    for (int step = 1; step < early_steps; ++step) {
      all.push_back(ends_of(program, trace, step, false));
      const Ends real = ends_of(program, trace, step, true);
      std::printf(
          "step %d: backward ends %.3f ms after the first update starts, %.3f on the real "
          "clock\n",
          step + 1, 1e3 * (all.back().last_backward - all.back().first_update),
          1e3 * (real.last_backward - real.first_update));
    }
    return all;
  }

  TemporaryFolder folder_;
  PlacedTraining::Feeds feeds_;
};

TEST_P(EarlyUpdatesTest, StartBeforeBackwardEnds) {
  for (const Ends& ends : run({})) EXPECT_LT(ends.first_update, ends.last_backward);
}

TEST_P(EarlyUpdatesTest, WaitForTheGlobalNorm) {
  for (const Ends& ends : run({"optimizer.clip_norm=1.0"}))
    EXPECT_GE(ends.first_update, ends.last_backward);
}

INSTANTIATE_TEST_SUITE_P(Widths, EarlyUpdatesTest, ::testing::Values(large, small),
                         [](const auto& info) { return info.param == large ? "large" : "small"; });

}  // namespace
}  // namespace tandem::testing
