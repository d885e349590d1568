// Updates on the host in ranges: gradients down, update, weights up as a pipeline, with the bits of
// the update that runs whole.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/graph/builder.h"
#include "engine/plan/crossings.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

struct Home {
  const char* name;
  int run, weight, update;  // devices
};

class RangesRunTest : public ::testing::Test {
 protected:
  const OperatorSet operators = all_operators();

  static Placement placement_of(const Graph& graph, const Machine& machine, const Home& home) {
    Placement placement;
    for (const Device* device : machine.devices) placement.devices.push_back(device->name());
    for (const Node& node : graph.nodes)
      placement.nodes.push_back({node.phase == Phase::update ? home.update : home.run, "test"});
    for (const State& state : graph.states) {
      const bool mirrors = state.kind == StateKind::parameter;
      placement.states.push_back({home.update, mirrors ? home.weight : home.update, "test"});
    }
    return placement;
  }

  struct Outcome {
    std::vector<HostTensor> states;
    std::uint64_t copied = 0;  // bytes to and from accelerators
    int parts = 0;             // the most parts of a node
    std::vector<Crossing> crossings;
  };

  Outcome run(const Graph& graph, const Home& home, std::size_t range_bytes) {
    Machine machine(1);
    ProgramOptions options;
    options.lower.range_bytes = range_bytes;
    OwnProgram own = make_program(graph, operators, machine.devices,
                                  placement_of(graph, machine, home), options);
    const DeviceCounters before = machine.devices[1]->counters();
    for (std::uint64_t ticket = 0; ticket < 4; ++ticket)
      run_step(*own.program, random_feeds(graph, 5, static_cast<int>(ticket) + 1), ticket);
    machine.synchronize();
    const DeviceCounters after = machine.devices[1]->counters();
    Outcome outcome;
    outcome.copied =
        after.bytes_to_device + after.bytes_to_host - before.bytes_to_device - before.bytes_to_host;
    for (const Queue& queue : own.program->plan().queues) {
      for (const Instruction& instruction : queue.instructions)
        outcome.parts = std::max(outcome.parts, instruction.parts);
    }
    outcome.crossings = crossings_of(own.program->lowered(), own.program->plan());
    for (const State& state : graph.states) outcome.states.push_back(own.states.read(state.name));
    EXPECT_EQ(machine.monitor->order_errors(), std::vector<std::string>{});
    return outcome;
  }
};

constexpr std::size_t no_ranges = std::size_t{1} << 40;

TEST_F(RangesRunTest, SameBitsAndBytesAsWhole) {
  for (Update update : {Update::sgd, Update::momentum, Update::adam}) {
    const Graph graph = mlp_training(operators, 8, {70, 300, 300, 3}, update);
    for (const Home& home : {Home{"weights on the device", 1, 1, 0}, Home{"all fetched", 1, 0, 0},
                             Home{"update on the device", 0, 0, 1}}) {
      SCOPED_TRACE(home.name);
      const Outcome whole = run(graph, home, no_ranges), cut = run(graph, home, 16 << 10);
      EXPECT_EQ(whole.parts, 1);
      EXPECT_EQ(cut.parts, 22);  // 300 x 300 floats
      EXPECT_EQ(cut.copied, whole.copied);
      for (std::size_t s = 0; s < graph.states.size(); ++s) {
        ASSERT_EQ(cut.states[s].bytes(), whole.states[s].bytes());
        EXPECT_EQ(std::memcmp(cut.states[s].data(), whole.states[s].data(), cut.states[s].bytes()),
                  0)
            << graph.states[s].name;
      }
    }
  }
}

TEST_F(RangesRunTest, ACopyInRangesIsOneCrossing) {
  const Graph graph = mlp_training(operators, 8, {70, 300, 3}, Update::momentum);
  const Home home{"weights on the device", 1, 1, 0};
  const auto sorted = [](const std::vector<Crossing>& crossings) {
    std::vector<std::string> lines;
    for (const Crossing& c : crossings)
      lines.push_back(std::to_string(c.from) + " > " + std::to_string(c.to) + " " +
                      std::to_string(c.bytes));
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  const Outcome whole = run(graph, home, 100 << 10), cut = run(graph, home, 8 << 10);
  EXPECT_GT(cut.parts, 1);
  EXPECT_EQ(sorted(cut.crossings), sorted(whole.crossings));
}

// gradient down, Accumulate and SgdUpdate on the host, weight up
TEST_F(RangesRunTest, NodesOfOneQueueTakeTurns) {
  GraphBuilder b(operators);
  const TensorType type{DType::float32, {64, 64}};
  const auto state = [&](const std::string& name, StateKind kind) {
    State state;
    state.name = state.path = name;
    state.kind = kind;
    state.trainable = kind == StateKind::parameter;
    state.start = HostTensor(type);
    return b.state(std::move(state));
  };
  b.set_scope({"forward", Phase::forward, {}});
  const ValueId w = state("w", StateKind::parameter), sum = state("sum", StateKind::buffer);
  const ValueId x = b.input("x", type);
  const ValueId y = b.add(w, x);
  b.output("y", y);
  b.set_scope({"backward", Phase::backward, {}});
  const ValueId gradient = b.mul(y, x);
  b.set_scope({"update", Phase::update, {}});
  const ValueId lr = b.input("lr", {DType::float32, {}}),
                step = b.input("step", {DType::int64, {}});
  const ValueId summed = b.add_node("Accumulate", {sum, gradient});
  b.write_state(sum, summed);
  b.write_state(
      w, b.add_node("SgdUpdate", {w, summed, ValueId{}, lr, step, b.scalar(1, DType::float32),
                                  b.scalar(0, DType::boolean)}));
  const Graph graph = b.finish();

  Machine machine(1);
  const Placement placement = placement_of(graph, machine, {"weights on the device", 1, 1, 0});
  ProgramOptions options;
  options.lower.range_bytes = 4 << 10;
  std::vector<int> parts;
  options.accept = [&](const Plan& plan) {
    for (const Instruction& i : plan.queues[0].instructions) {
      if (i.kind == Instruction::Kind::run && i.parts == 4) parts.push_back(i.part);
    }
  };
  EXPECT_EQ(program_difference(graph, operators, machine.devices, placement, 3, 1e-6, options), "");
  EXPECT_EQ(machine.monitor->order_errors(), std::vector<std::string>{});
  EXPECT_EQ(parts, (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST_F(RangesRunTest, RandomPlacements) {
  for (Update update : {Update::momentum, Update::adam}) {
    const Graph graph = mlp_training(operators, 4, {70, 64, 48, 3}, update);
    int cut = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      Machine machine(2);
      ProgramOptions options;
      options.lower.range_bytes = 4 << 10;
      options.accept = [&](const Plan& plan) {
        for (const Queue& queue : plan.queues) {
          for (const Instruction& i : queue.instructions) cut += i.parts > 1 && i.part == 0;
        }
      };
      const Placement placement = random_placement(graph, machine.devices, seed);
      EXPECT_EQ(program_difference(graph, operators, machine.devices, placement, 4, 5e-5, options),
                "");
      EXPECT_EQ(machine.monitor->order_errors(), std::vector<std::string>{});
    }
    EXPECT_GT(cut, 20);
  }
}

}  // namespace
}  // namespace tandem::testing
