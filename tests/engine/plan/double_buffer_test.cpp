// What a device gets from input slots alternates between two places: the next step's is copied
// while this step computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/plan/simulate.h"
#include "tests/engine/plan/missing_wait.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

class DoubleBufferTest : public ::testing::Test {
 protected:
  // All on the accelerator.
  Placement placement() const {
    Placement placement;
    for (const Device* device : machine.devices) placement.devices.push_back(device->name());
    placement.nodes.resize(graph.nodes.size(), {1, "test"});
    placement.states.resize(graph.states.size(), {1, 1, "test"});
    return placement;
  }

  ProgramOptions options(bool double_inputs) const {
    ProgramOptions options;
    options.double_inputs = double_inputs;
    options.profiles = profiles;
    return options;
  }

  CompiledProgram compiled(bool double_inputs) const {
    return compile_program(graph, placement(), operators, machine.devices, options(double_inputs));
  }

  static int doubled(const Plan& plan) {
    return static_cast<int>(std::count_if(plan.buffers.begin(), plan.buffers.end(),
                                          [](const Buffer& b) { return b.copies == 2; }));
  }

  static bool mentions(const std::vector<std::string>& wrong, const std::string& text) {
    return std::any_of(wrong.begin(), wrong.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

  const OperatorSet operators = all_operators();
  Machine machine{1};
  const Graph graph = mlp_training(operators, 64, {300, 50, 3}, Update::momentum);
  // x is 77 kB, 3.1 us over the link of the emulated device, with 10 us of
  // latency.
  const std::vector<DeviceProfile> profiles{{}, {1e12, 1e12, 5e-6, 25e9, 10e-6}};
};

TEST_F(DoubleBufferTest, FedInputsHaveTwoPlaces) {
  const CompiledProgram program = compiled(true);
  EXPECT_EQ(doubled(program.plan), 6);  // x, labels, lr, step; loss and logits
  EXPECT_EQ(doubled(compiled(false).plan), 0);
  const std::string text = to_text(program.plan, program.lowered);
  EXPECT_NE(text.find(" in turn"), std::string::npos) << text;
  EXPECT_NE(text.find(" of two steps before"), std::string::npos) << text;
  EXPECT_GE(program.plan.memory[1].arena, 2 * 64 * 300 * sizeof(float));
}

TEST_F(DoubleBufferTest, CopiesAreHidden) {
  const auto exposed = [&](const CompiledProgram& program, double& seconds) {
    const Simulation simulation = simulate(program.plan, program.lowered, profiles);
    seconds = simulation.seconds;
    double sum = 0;
    for (const SimulatedSpan& span : simulation.spans) {
      if (program.plan.queues[span.queue].role == Queue::Role::copy_in) sum += span.exposed;
    }
    return sum;
  };
  double single = 0, twice = 0;
  EXPECT_GT(exposed(compiled(false), single), 10e-6);
  EXPECT_EQ(exposed(compiled(true), twice), 0);
  EXPECT_LT(twice, single - 5e-6);
}

TEST_F(DoubleBufferTest, StepsFromRestGrowIntoTheSteadyState) {
  const CompiledProgram program = compiled(true);
  const std::vector<SimulatedSpan> all =
      simulate_from_rest(program.plan, program.lowered, profiles, 4);
  const Simulation simulation = simulate(program.plan, program.lowered, profiles);
  const std::vector<SimulatedSpan>& steady = simulation.spans;
  const std::size_t in_step = steady.size();
  ASSERT_EQ(all.size(), 4 * in_step);
  double earliest = 1e9, first_end = 0, second_copy = 1e9;
  for (std::size_t i = 0; i < in_step; ++i) {
    EXPECT_EQ(all[3 * in_step + i].queue, steady[i].queue);
    EXPECT_EQ(all[3 * in_step + i].index, steady[i].index);
    EXPECT_EQ(all[3 * in_step + i].start, steady[i].start);
    EXPECT_EQ(all[3 * in_step + i].end, steady[i].end);
    const Queue& queue = program.plan.queues[all[i].queue];
    earliest = std::min(earliest, all[i].start);
    if (queue.role == Queue::Role::compute) first_end = std::max(first_end, all[i].end);
    if (queue.role == Queue::Role::copy_in)
      second_copy = std::min(second_copy, all[in_step + i].start);
  }
  EXPECT_EQ(earliest, 0);
  EXPECT_GT(first_end, simulation.seconds);  // nothing was copied ahead of the first step
  EXPECT_LT(second_copy, first_end);         // the second one's inputs are, while it computes
}

TEST_F(DoubleBufferTest, EveryWaitIsNeeded) {
  const CompiledProgram program = compiled(true);
  EXPECT_EQ(verify(program.plan, program.lowered), std::vector<std::string>{});
  int across_two = 0;
  for (const Launch& wait : waits_of(program.plan)) {
    const int back = program.plan.queues[wait.queue].instructions[wait.index].steps_back;
    across_two += back == 2;
    Plan broken = program.plan;
    erase_wait(broken, wait);
    const std::vector<std::string> wrong = verify(broken, program.lowered);
    EXPECT_TRUE(mentions(wrong, "not ordered")) << wait.queue << " " << wait.index;
    if (back == 2) {
      EXPECT_TRUE(mentions(wrong, "of the step after the next"));
    }
  }
  EXPECT_GE(across_two, 1);
}

TEST_F(DoubleBufferTest, VerifierRejectsSharedPlaces) {
  const CompiledProgram program = compiled(true);
  const auto broken_by = [&](auto change) {
    Plan plan = program.plan;
    for (Buffer& buffer : plan.buffers) {
      if (buffer.copies == 2 && buffer.bytes > 1000) change(plan, buffer);
    }
    plan.memory[1].arena *= 2;
    return verify(plan, program.lowered);
  };
  EXPECT_TRUE(
      mentions(broken_by([](Plan&, Buffer& buffer) { buffer.stride = 64; }), "copies overlap"));
  EXPECT_TRUE(mentions(broken_by([](Plan& plan, Buffer& buffer) {
                         for (Buffer& other : plan.buffers) {
                           if (!other.in_arena() || other.device != 1 || other.copies > 1 ||
                               other.bytes > buffer.bytes)
                             continue;
                           other.offset = buffer.offset + buffer.stride;
                           break;
                         }
                       }),
                       "live at the same time"));
}

TEST_F(DoubleBufferTest, SameBitsInLessTime) {
  const auto run = [&](bool double_inputs, double& seconds) {
    Machine own_machine(1);
    OwnProgram own =
        make_program(graph, operators, own_machine.devices, placement(), options(double_inputs));
    std::vector<HostTensor> states;
    std::uint64_t ticket = 0;
    const auto steps = [&](int count) {
      for (int i = 0; i < count; ++i, ++ticket)
        run_step(*own.program, random_feeds(graph, 5, static_cast<int>(ticket) + 1), ticket);
      own_machine.synchronize();
      return own_machine.monitor->virtual_time();
    };
    const double start = steps(3);
    seconds = (steps(6) - start) / 6;
    for (const State& state : graph.states) states.push_back(own.states.read(state.name));
    EXPECT_EQ(own_machine.monitor->order_errors(), std::vector<std::string>{});
    return states;
  };
  double single = 0, twice = 0;
  const std::vector<HostTensor> expected = run(false, single), got = run(true, twice);
  for (std::size_t s = 0; s < expected.size(); ++s) {
    EXPECT_EQ(std::memcmp(got[s].data(), expected[s].data(), got[s].bytes()), 0)
        << graph.states[s].name;
  }
  EXPECT_LT(twice, single);
}

// Programs that take turns, each with a parity of its own.
TEST_F(DoubleBufferTest, ProgramsTakeTurns) {
  StateStore states;
  const auto arenas = make_arenas();
  Program first(graph, placement(), operators, machine.devices, states, arenas, options(true));
  Program second(graph, placement(), operators, machine.devices, states, arenas, options(true));
  std::uint64_t tickets[2] = {0, 0};
  for (int turn : {0, 1, 1, 0, 0, 0, 1, 0, 1}) {
    const std::uint64_t ticket = tickets[turn]++;
    run_step(turn == 0 ? first : second, random_feeds(graph, 5, static_cast<int>(ticket) + 1),
             ticket);
  }
  EXPECT_EQ(machine.monitor->order_errors(), std::vector<std::string>{});
}

}  // namespace
}  // namespace tandem::testing
