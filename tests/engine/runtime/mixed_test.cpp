// Programs over the host and emulated accelerators: same results wherever nodes and states are, and
// no access out of order.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/graph/builder.h"
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

// Steps whose tickets do not take the slots in turn: an evaluation that starts again, or one that
// runs only for other ranks.
TEST_F(MixedTest, TicketsMayComeInAnyOrder) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Machine machine(1);
    OwnProgram own = make_program(graph, operators, machine.devices,
                                  random_placement(graph, machine.devices, seed));
    for (const std::uint64_t ticket : {0, 1, 2, 0, 0, 5, 3, 4, 4, 1, 0})
      run_step(*own.program, random_feeds(graph, 5, static_cast<int>(ticket)), ticket);
    machine.synchronize();
    EXPECT_EQ(joined(machine.monitor->order_errors()), "");
  }
}

// A program without 16-bit weights next to its masters leaves those of another program stale.
TEST_F(MixedTest, WeightsFollowMastersThatAnotherProgramWrites) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::momentum);
  Machine machine(1);
  Placement placement;
  for (const Device* device : machine.devices) placement.devices.push_back(device->name());
  placement.nodes.assign(graph.nodes.size(), {1, "test"});
  placement.states.assign(graph.states.size(), {1, 1, "test"});
  ProgramOptions half;
  half.lower.compute = DType::bfloat16;
  const auto loss_of = [&](Program& program, std::uint64_t ticket) {
    run_step(program, random_feeds(graph, 5, static_cast<int>(ticket)), ticket);
    return *static_cast<const float*>(program.output(0, ticket));
  };
  StateStore states;
  const auto arenas = make_arenas();
  Program narrow(graph, placement, operators, machine.devices, states, arenas, half);
  Program wide(graph, placement, operators, machine.devices, states, arenas, {});
  ASSERT_TRUE(states.has("fc1.weight/weight"));
  loss_of(narrow, 0);
  for (std::uint64_t ticket = 1; ticket < 4; ++ticket) loss_of(wide, ticket);
  StateStore others;
  Program alone(graph, placement, operators, machine.devices, others, make_arenas(), half);
  for (const std::string& name : states.names()) others.write(name, states.read(name));
  const float loss = loss_of(alone, 4);
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(loss_of(narrow, 4), loss);
  EXPECT_EQ(joined(machine.monitor->order_errors()), "");
}

TEST_F(MixedTest, RandomGraphs) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_same(random_graph(operators, seed), 1, 2, 1e-5);
  }
}

// Copies of tensors without elements move nothing, and nothing waits for them.
TEST_F(MixedTest, TensorsWithoutElements) {
  struct Case {
    Shape table, ids;
  };
  for (const Case& each : {Case{{10, 3}, {4, 0}}, Case{{10, 0}, {4, 2}}}) {
    SCOPED_TRACE(to_string(each.ids));
    GraphBuilder g(operators);
    const ValueId ids = g.input("ids", {DType::int64, each.ids});
    const ValueId table = g.input("table", {DType::float32, each.table});
    const ValueId bias = g.input("bias", {DType::float32, {4, 1}});
    const ValueId rows = g.add_node("Gather", {g.neg(g.neg(table)), ids});
    g.output("y", g.add(g.reduce_sum(g.neg(rows), {1, 2}, false), g.reshape(bias, {4})));
    expect_same(g.finish(), 1, 20, 1e-6);
  }
}

// Every instruction leaves a span, whatever it copies.
TEST_F(MixedTest, TracesHoldASpanForCopiesOfNothing) {
  GraphBuilder g(operators);
  const ValueId empty = g.input("empty", {DType::float32, {4, 0}});
  const ValueId x = g.input("x", {DType::float32, {4, 3}});
  g.output("y", g.neg(g.add_node("Concat", {g.neg(empty), g.neg(x)}, {{"axis", std::int64_t{1}}})));
  const Graph graph = g.finish();
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Machine machine(1);
    OwnProgram own = make_program(graph, operators, machine.devices,
                                  random_placement(graph, machine.devices, seed));
    std::size_t spans = 0;
    bool is_mixed = false;
    for (const Queue& queue : own.program->plan().queues) {
      is_mixed = is_mixed || queue.device != 0;
      for (const Instruction& instruction : queue.instructions) {
        spans += instruction.kind != Instruction::Kind::wait &&
                 instruction.kind != Instruction::Kind::record;
      }
    }
    if (!is_mixed) continue;  // a host without accelerators has no queues to trace
    machine.monitor->start_trace(100);
    run_step(*own.program, random_feeds(graph, 5, 0), 0);
    machine.synchronize();
    EXPECT_EQ(machine.monitor->trace().size(), spans);
  }
}

}  // namespace
}  // namespace tandem::testing
