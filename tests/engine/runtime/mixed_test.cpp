// Programs over the host and emulated accelerators: same results wherever nodes and states are, and
// no access out of order.
#include <gtest/gtest.h>

#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class MixedTest : public ::testing::Test {
 protected:
  const OperatorSet operators = all_operators();

  void expect_same(const Graph& graph, int accelerators, int placements, double tolerance) {
    for (int seed = 0; seed < placements; ++seed) {
      SCOPED_TRACE("placement " + std::to_string(seed));
      Machine machine(accelerators);
      const Placement placement =
          random_placement(graph, machine.devices, static_cast<std::uint64_t>(seed));
      EXPECT_EQ(program_difference(graph, operators, machine.devices, placement, 4, tolerance), "");
      EXPECT_EQ(joined(machine.monitor->order_errors()), "");
      if (::testing::Test::HasFailure()) break;
    }
  }
};

TEST_F(MixedTest, Perceptrons) {
  for (Update update : {Update::sgd, Update::momentum, Update::adam})
    expect_same(mlp_training(operators, 4, {7, 6, 5, 3}, update), 1, 20, 5e-5);
}
TEST_F(MixedTest, Convolutions) { expect_same(convolution_training(operators), 1, 20, 2e-4); }
TEST_F(MixedTest, Attention) { expect_same(attention_training(operators), 1, 20, 2e-4); }
TEST_F(MixedTest, ThreeDevices) {
  expect_same(mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam), 2, 20, 5e-5);
  expect_same(convolution_training(operators), 2, 10, 2e-4);
}

// Training, evaluation, micro-batches: programs over one State and one arena.
TEST_F(MixedTest, ProgramsTakeTurns) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Machine machine(1);
    const Placement placement = random_placement(graph, machine.devices, seed);
    StateStore states;
    const auto arenas = make_arenas();
    Program first(graph, placement, operators, machine.devices, states, arenas, {});
    Program second(graph, placement, operators, machine.devices, states, arenas, {});
    for (std::uint64_t ticket = 0; ticket < 3; ++ticket) {
      run_step(first, random_feeds(graph, 5, static_cast<int>(ticket)), ticket);
      run_step(second, random_feeds(graph, 6, static_cast<int>(ticket)), ticket);
    }
    EXPECT_EQ(joined(machine.monitor->order_errors()), "");
  }
}

TEST_F(MixedTest, RandomGraphs) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_same(random_graph(operators, seed), 1, 2, 1e-5);
  }
}

}  // namespace
}  // namespace tandem::testing
