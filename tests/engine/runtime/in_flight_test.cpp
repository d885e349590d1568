// Two steps of a program in flight: the second is launched before the host has read the first one's
// outputs. Wherever nodes and states are, the results are those of one step after the other.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

constexpr int launched_steps = 8;

class InFlightTest : public ::testing::Test {
 protected:
  /// Outputs of all steps, then the states.
  std::vector<std::vector<std::byte>> run(const Graph& graph, int accelerators, std::uint64_t seed,
                                          bool ahead) {
    Machine machine(accelerators);
    OwnProgram own = make_program(graph, operators, machine.devices,
                                  random_placement(graph, machine.devices, seed));
    Program& program = *own.program;
    const bool two = ahead && program.steps_in_flight() == 2;
    ran_ahead_ += two;
    std::vector<std::vector<std::byte>> bytes;
    const auto keep = [&](const void* from, std::size_t count) {
      const auto* first = static_cast<const std::byte*>(from);
      bytes.emplace_back(first, first + count);
    };
    const auto finish = [&](std::uint64_t ticket) {
      program.finish(ticket);
      for (std::size_t i = 0; i < graph.outputs.size(); ++i)
        keep(program.output(static_cast<int>(i), ticket),
             graph.type(graph.outputs[i].value).bytes());
    };
    for (std::uint64_t ticket = 0; ticket < launched_steps; ++ticket) {
      launch_step(program, random_feeds(graph, 5, static_cast<int>(ticket) + 1), ticket);
      if (!two)
        finish(ticket);
      else if (ticket > 0)
        finish(ticket - 1);
    }
    if (two) finish(launched_steps - 1);
    for (const State& state : graph.states) {
      const HostTensor value = own.states.read(state.name);
      keep(value.data(), value.bytes());
    }
    machine.synchronize();
    EXPECT_EQ(machine.monitor->order_errors(), std::vector<std::string>{}) << "seed " << seed;
    return bytes;
  }
  void expect_same(const Graph& graph, int accelerators, int seeds) {
    for (int seed = 0; seed < seeds; ++seed) {
      const auto number = static_cast<std::uint64_t>(seed);
      EXPECT_EQ(run(graph, accelerators, number, true) == run(graph, accelerators, number, false),
                true)
          << "seed " << seed;
    }
    EXPECT_EQ(ran_ahead_, seeds);
  }

  const OperatorSet operators = all_operators();
  int ran_ahead_ = 0;
};

TEST_F(InFlightTest, Perceptrons) {
  expect_same(mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam), 1, 12);
}
TEST_F(InFlightTest, Convolutions) { expect_same(convolution_training(operators), 1, 6); }
TEST_F(InFlightTest, AttentionOnThreeDevices) { expect_same(attention_training(operators), 2, 8); }

TEST_F(InFlightTest, TheHostAloneHasOneStepUnderWay) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 3}, Update::sgd);
  Machine machine(1);
  const OwnProgram own = make_program(graph, operators, *machine.cpu);
  EXPECT_EQ(own.program->steps_in_flight(), 1);
}

// With one place for each slot the second step would overwrite the first one's outputs.
TEST_F(InFlightTest, OnePlaceOfASlotHoldsOneStep) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 3}, Update::sgd);
  Machine machine(1);
  Placement placement;
  for (const Device* device : machine.devices) placement.devices.push_back(device->name());
  placement.nodes.resize(graph.nodes.size(), {1, "test"});
  placement.states.resize(graph.states.size(), {1, 1, "test"});
  for (const int slots : {1, 4}) {
    ProgramOptions options;
    options.output_slots = slots;
    const OwnProgram own = make_program(graph, operators, machine.devices, placement, options);
    EXPECT_EQ(own.program->steps_in_flight(), slots == 1 ? 1 : 2);
  }
}

}  // namespace
}  // namespace tandem::testing
