// How many kernel calls update small parameters, and when each of them can begin.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/graph/builder.h"
#include "engine/operators/grouped_update.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

constexpr int layers = 12;

/// A kernel call that updates parameters, in a lowered graph.
struct Call {
  std::int32_t node = 0;
  std::int32_t first_gradient = 0, last_gradient = 0;  // nodes that make them
  int tensors = 0;
  std::int64_t elements = 0;
};

class GroupUpdatesTest : public ::testing::Test {
 protected:
  Graph perceptron(std::int64_t width) const {
    return mlp_training(operators, 8, std::vector<std::int64_t>(layers + 1, width), Update::adam);
  }

  /// All updates get one scale, which waits for every gradient.
  Graph clipped(Graph graph) const {
    GraphBuilder b(operators, std::move(graph));
    b.set_scope({"clip", Phase::update, {}});
    std::vector<ValueId> squares;
    const std::size_t count = b.graph().nodes.size();
    for (std::size_t n = 0; n < count; ++n) {
      const Node& node = b.graph().nodes[n];
      if (is_optimizer_update(node))
        squares.push_back(b.add_node("SumOfSquares", {node.inputs[1]}));
    }
    const ValueId scale = b.node("ClipScale", squares, {{"max_norm", 1.0}})[0];
    for (std::size_t n = 0; n < count; ++n) {
      Node& node = b.graph().nodes[n];
      if (is_optimizer_update(node)) node.inputs[first_scalar(node) + 2] = scale;
    }
    Graph made = b.finish();  // in the order of nodes, updates come last
    std::stable_partition(made.nodes.begin(), made.nodes.end(),
                          [](const Node& node) { return !is_optimizer_update(node); });
    for (std::size_t n = 0; n < made.nodes.size(); ++n) {
      for (ValueId output : made.nodes[n].outputs)
        made.value(output).producer = NodeId{static_cast<std::int32_t>(n)};
    }
    verify(made);
    return made;
  }

  /// Forward and backward on device `run`; masters, moments and updates on `state`.
  static Placement placed(const Graph& graph, int run, int state) {
    Placement placement;
    placement.devices = {"cpu", "emulated:0"};
    for (const Node& node : graph.nodes)
      placement.nodes.push_back({node.phase == Phase::update ? state : run, "test"});
    placement.states.assign(graph.states.size(), {state, run, "test"});
    return placement;
  }

  Lowered lowered(const Graph& graph, const Placement& placement) {
    return lower(graph, placement, operators, machine.devices, {});
  }

  static std::vector<Call> calls_of(const Lowered& lowered) {
    const Graph& graph = lowered.graph;
    std::vector<Call> calls;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (node.op->name != "GroupedUpdate" && !is_optimizer_update(node)) continue;
      Call& call = calls.emplace_back(Call{static_cast<std::int32_t>(n), 1 << 30, 0, 0, 0});
      const std::size_t inputs = update_group(node).inputs;
      for (std::size_t i = 0; i < first_scalar(node); i += inputs) {
        const std::int32_t maker = graph.value(node.inputs[i + 1]).producer.index;
        call.first_gradient = std::min(call.first_gradient, maker);
        call.last_gradient = std::max(call.last_gradient, maker);
        ++call.tensors;
        call.elements += graph.type(node.inputs[i]).elements();
      }
    }
    return calls;
  }

  static int tensors(const std::vector<Call>& calls) {
    int sum = 0;
    for (const Call& call : calls) sum += call.tensors;
    return sum;
  }

  const OperatorSet operators = all_operators();
  Machine machine{1};
};

TEST_F(GroupUpdatesTest, BeginAsTheirGradientsArrive) {
  const Graph graph = perceptron(32);
  const Lowered split = lowered(graph, placed(graph, 1, 0));
  const std::vector<Call> calls = calls_of(split);
  EXPECT_EQ(tensors(calls), 2 * layers);
  ASSERT_GE(calls.size(), 4u);
  ASSERT_LE(calls.size(), 8u);  // fewer than one for each parameter
  for (std::size_t i = 1; i < calls.size(); ++i)
    EXPECT_LT(calls[i - 1].last_gradient, calls[i].first_gradient);
  std::int32_t last_backward = 0;
  for (std::size_t n = 0; n < split.graph.nodes.size(); ++n) {
    if (split.graph.nodes[n].phase == Phase::backward && split.nodes[n].kernel != nullptr)
      last_backward = static_cast<std::int32_t>(n);
  }
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) EXPECT_LT(calls[i].node, last_backward);
}

TEST_F(GroupUpdatesTest, AreOneCallWhereNothingCrosses) {
  const Graph graph = perceptron(32);
  for (int device : {0, 1}) {
    const std::vector<Call> calls = calls_of(lowered(graph, placed(graph, device, device)));
    ASSERT_EQ(calls.size(), 1u) << device;
    EXPECT_EQ(calls[0].tensors, 2 * layers);
  }
}

TEST_F(GroupUpdatesTest, AreOneCallWhereAllWaitForTheNorm) {
  const Graph graph = clipped(perceptron(32));
  const std::vector<Call> calls = calls_of(lowered(graph, placed(graph, 1, 0)));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].tensors, 2 * layers);
}

TEST_F(GroupUpdatesTest, CallsAreAsLargeAsALargeTensor) {
  constexpr std::int64_t width = 200, enough = 64 << 10;
  const Graph graph = perceptron(width);
  const std::vector<Call> calls = calls_of(lowered(graph, placed(graph, 1, 0)));
  EXPECT_EQ(tensors(calls), 2 * layers);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_LT(calls[i].elements, enough + width * width + width);
    EXPECT_TRUE(calls[i].elements >= enough || i + 1 == calls.size()) << calls[i].elements;
  }
}

TEST_F(GroupUpdatesTest, ComputeTheSameBits) {
  for (const Graph& graph : {perceptron(24), clipped(perceptron(24))}) {
    const auto states = [&](const ProgramOptions& options) {
      OwnProgram own =
          make_program(graph, operators, machine.devices, placed(graph, 1, 0), options);
      for (std::uint64_t step = 0; step < 3; ++step)
        run_step(*own.program, random_feeds(graph, 5, static_cast<std::int64_t>(step) + 1), step);
      std::vector<std::vector<float>> all;
      for (const State& state : graph.states) {
        const HostTensor tensor = own.states.read(state.name);
        all.emplace_back(tensor.as<float>().begin(), tensor.as<float>().end());
      }
      return all;
    };
    ProgramOptions alone;
    alone.lower.disabled_passes = {"group_updates"};
    EXPECT_EQ(states({}), states(alone));
    EXPECT_EQ(machine.monitor->order_errors(), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace tandem::testing
