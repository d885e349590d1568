// Independent parts of a graph on different devices run at the same time: by declared durations on
// the virtual clock, whatever the machine does meanwhile.
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

constexpr double branch_seconds = 0.05;  // for each branch in a step, on the virtual clock
constexpr int layers = 8, overlap_steps = 6;
constexpr std::int64_t branch_batch = 64, width = 256;

/// x -> two stacks of products and Tanh, "left" and "right" -> their sum -> loss; with SGD.
Graph two_branches(const OperatorSet& operators) {
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, {branch_batch, width}});
  std::vector<ValueId> weights, ends;
  for (const std::string branch : {"left", "right"}) {
    ValueId y = x;
    for (int layer = 0; layer < layers; ++layer) {
      const std::string path = branch + "." + std::to_string(layer);
      b.set_scope({path, Phase::forward, {}});
      State state;
      state.name = path + ".weight";
      state.path = path + ":weight";
      state.trainable = true;
      state.start = HostTensor(TensorType{DType::float32, {width, width}});
      int i = 0;
      for (float& w : state.start.as<float>()) w = 0.01f * static_cast<float>(i++ % 17 - 8);
      weights.push_back(b.state(std::move(state)));
      y = b.add_node("Tanh", {b.matmul(y, weights.back())});
    }
    ends.push_back(y);
  }
  b.set_scope({"loss", Phase::forward, {}});
  const ValueId loss = b.reduce_mean(b.add(ends[0], ends[1]), {0, 1}, false);
  b.output("loss", loss);
  b.set_scope({"", Phase::backward, {}});
  const GradientSeed seed{loss, b.filled(1, b.type(loss))};
  const std::vector<ValueId> gradients = add_gradients(b, {&seed, 1}, weights);
  b.set_scope({"update", Phase::update, {}});
  const ValueId lr = b.input("lr", {DType::float32, {}}),
                step = b.input("step", {DType::int64, {}});
  const ValueId scale = b.scalar(1, DType::float32), skip = b.scalar(0, DType::boolean);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    b.set_scope({"update." + b.graph().states[i].name, Phase::update, {}});
    b.write_state(weights[i], b.add_node("SgdUpdate", {weights[i], gradients[i], ValueId{}, lr,
                                                       step, scale, skip}));
  }
  return b.finish();
}

/// What belongs to the right branch is on the accelerator.
Placement by_branch(const Graph& graph, const std::vector<Device*>& devices) {
  Placement placement;
  for (const Device* device : devices) placement.devices.push_back(device->name());
  const auto device_of = [](const std::string& path) {
    return path.find("right") == std::string::npos ? 0 : 1;
  };
  for (const Node& node : graph.nodes) placement.nodes.push_back({device_of(node.path), "test"});
  for (const State& state : graph.states) {
    placement.states.push_back({device_of(state.name), device_of(state.name), "test"});
  }
  return placement;
}

/// The kernels of each device take `branch_seconds` in total, an equal share each.
std::vector<DeviceProfile> even_profiles(const Plan& plan, std::size_t devices) {
  std::vector<int> kernels(devices, 0);
  for (const Queue& queue : plan.queues) {
    for (const Instruction& instruction : queue.instructions)
      kernels[queue.device] += instruction.kind == Instruction::Kind::run;
  }
  std::vector<DeviceProfile> profiles(devices);
  for (std::size_t d = 0; d < devices; ++d) {
    profiles[d].flops = profiles[d].bandwidth = 1e30;
    profiles[d].overhead = branch_seconds / kernels[d];
  }
  return profiles;
}

struct Interval {
  double start = 0, end = 0;
};

double length(const std::vector<Interval>& intervals) {
  return std::accumulate(intervals.begin(), intervals.end(), 0.0,
                         [](double sum, const Interval& i) { return sum + i.end - i.start; });
}

/// Seconds in which both work; intervals of one list do not overlap.
double together(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double sum = 0;
  for (const Interval& x : a) {
    for (const Interval& y : b)
      sum += std::max(0.0, std::min(x.end, y.end) - std::max(x.start, y.start));
  }
  return sum;
}

/// What a clock shows for some steps; seconds a step.
struct Timing {
  std::vector<Interval> left, right;  // at work
  double all = 0;                     // kernels and copies, one after the other
  double step = 0;

  double overlap() const { return together(left, right) / std::min(length(left), length(right)); }
};

Timing timing_of(const OrderChecker& monitor, double begin, double end, bool real) {
  Timing timing;
  for (const TraceSpan& span : monitor.trace()) {
    const Interval interval =
        real ? Interval{span.real_start, span.real_end} : Interval{span.start, span.end};
    timing.all += (interval.end - interval.start) / overlap_steps;
    const std::string lane = monitor.lane_name(span.lane);
    if (lane == "cpu") timing.left.push_back(interval);
    if (lane == "emulated:0") timing.right.push_back(interval);
  }
  timing.step = (end - begin) / overlap_steps;
  return timing;
}

TEST(Overlap, BranchesOnTwoDevicesRunAtOnce) {
  const OperatorSet operators = all_operators();
  const Graph graph = two_branches(operators);
  Machine machine(1);
  const Placement placement = by_branch(graph, machine.devices);
  ProgramOptions options;
  options.profiles =
      even_profiles(compile_program(graph, placement, operators, machine.devices, options).plan, 2);
  OwnProgram own = make_program(graph, operators, machine.devices, placement, options);
  const Feeds feeds = random_feeds(graph, 5, 1);
  std::uint64_t ticket = 0;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) run_step(*own.program, feeds, ticket++);
    machine.synchronize();
  };
  run(2);
  OrderChecker& monitor = *machine.monitor;
  monitor.start_trace(10000);
  const double begin = monitor.virtual_time(), real_begin = monitor.real_time();
  run(overlap_steps);
  const Timing planned = timing_of(monitor, begin, monitor.virtual_time(), false);
  const Timing real = timing_of(monitor, real_begin, monitor.real_time(), true);

  EXPECT_NEAR(length(planned.left) / overlap_steps, branch_seconds, 1e-9);
  EXPECT_NEAR(length(planned.right) / overlap_steps, branch_seconds, 1e-9);
  EXPECT_GT(planned.all, 2 * branch_seconds);  // copies, too
  EXPECT_GE(planned.overlap(), 0.8);
  EXPECT_LT(planned.step, 0.65 * planned.all);
  EXPECT_EQ(monitor.order_errors(), std::vector<std::string>());
  for (const auto& [clock, timing] : {std::pair{"virtual", &planned}, std::pair{"real", &real}}) {
    std::printf("%-7s clock: overlap %3.0f %%, step %.3f ms, one after the other %.3f ms\n", clock,
                100 * timing->overlap(), 1e3 * timing->step, 1e3 * timing->all);
  }
}

}  // namespace
}  // namespace tandem::testing
