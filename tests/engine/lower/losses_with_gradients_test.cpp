// A cross-entropy and its gradient in one node: when they join, when not, and that nothing else
// changes.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "engine/graph/builder.h"
#include "engine/lower/placed_graph.h"
#include "kernels/reference/reference_kernels.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"
#include "tests/harness/test_device.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t rows = 6, classes = 5;
const char* const joined_loss = "SoftmaxCrossEntropyWithGrad";

/// A loss and a gradient, one of whose operands a test may change.
struct LossGraph {
  const OperatorSet& operators;
  GraphBuilder b{operators};
  ValueId logits, labels, weights, losses, sums;
  double smoothing = 0.1;

  explicit LossGraph(const OperatorSet& set) : operators(set) {
    b.set_scope({"model", Phase::forward, {}});
    logits = b.add_node("Tanh", {b.input("x", {DType::float32, {rows, classes}})});
    labels = b.input("labels", {DType::int64, {rows}});
    weights = b.input("weights", {DType::float32, {rows}});
    b.set_scope({"loss", Phase::forward, {}});
    const auto outputs =
        b.node("SoftmaxCrossEntropy", {logits, labels, weights}, {{"label_smoothing", smoothing}});
    losses = outputs[0];
    sums = outputs[1];
    b.output("loss", b.reduce_mean(losses, {0}, false));
    b.set_scope({"loss", Phase::backward, {}});
  }

  ValueId filled(double value) { return b.filled(value, {DType::float32, {rows}}); }

  /// Outputs a gradient that reads `inputs`: `logits` and others.
  void gradient(const std::vector<ValueId>& inputs, double smooth,
                const std::string& name = "dlogits") {
    b.output(name, b.add_node("SoftmaxCrossEntropyGrad", inputs, {{"label_smoothing", smooth}}));
  }
  void gradient(ValueId dlosses) { gradient({dlosses, logits, labels, weights, sums}, smoothing); }
};

class LossesWithGradientsTest : public ::testing::Test {
 protected:
  /// How many nodes of each operator there are after this pass only.
  std::map<std::string, int> after_micro_batch(const Graph& graph, const Placement& placement,
                                               const std::vector<Device*>& devices) {
    const LowerContext context{operators, devices, options};
    const PlacedGraph placed = losses_with_gradients(placed_graph(graph, placement), context);
    verify(placed.graph);
    std::map<std::string, int> count;
    for (const Node& node : placed.graph.nodes) {
      ++count[node.op->name];
      if (node.op->name != joined_loss) continue;
      EXPECT_EQ(node.phase, Phase::forward);
    }
    return count;
  }
  std::map<std::string, int> after_micro_batch(const Graph& graph) {
    return after_micro_batch(graph, on_one_device(graph), {fast.get()});
  }

  /// The loss and what `build` adds to it join, and compute what the nodes compute one by one.
  void expect_joined(const std::function<void(LossGraph&)>& build) {
    LossGraph loss(operators);
    build(loss);
    const Graph graph = loss.b.finish();
    auto count = after_micro_batch(graph);
    EXPECT_EQ(count[joined_loss], 1) << to_text(graph);
    EXPECT_EQ(count["SoftmaxCrossEntropy"] + count["SoftmaxCrossEntropyGrad"], 0);
    EXPECT_EQ(program_difference(graph, operators, *fast, 2, 1e-6), "");
  }
  void expect_apart(const std::function<void(LossGraph&)>& build) {
    LossGraph loss(operators);
    build(loss);
    const Graph graph = loss.b.finish();
    auto count = after_micro_batch(graph);
    EXPECT_EQ(count[joined_loss], 0) << to_text(graph);
    EXPECT_EQ(count["SoftmaxCrossEntropyGrad"], 1);
    EXPECT_EQ(program_difference(graph, operators, *fast, 2, 1e-6), "");
  }

  static Placement keeping(const Graph& graph, Activations acts, int device) {
    Placement placement = on_one_device(graph);
    for (PlacedNode& node : placement.nodes) {
      node.acts = acts;
      node.device = device;
    }
    for (PlacedState& state : placement.states) state.state = state.param = device;
    return placement;
  }

  const OperatorSet operators = all_operators();
  LowerOptions options;
  std::unique_ptr<Device> fast = make_test_device(reference_kernels_as_fast());
};

TEST_F(LossesWithGradientsTest, TrainingsHaveOneNodeInsteadOfTwo) {
  for (const Graph& graph : {mlp_training(operators, 4, {7, 6, 3}, Update::adam),
                             convolution_training(operators), attention_training(operators)}) {
    auto count = after_micro_batch(graph);
    EXPECT_EQ(count[joined_loss], 1);
    EXPECT_EQ(count["SoftmaxCrossEntropy"] + count["SoftmaxCrossEntropyGrad"], 0);
    EXPECT_EQ(program_difference(graph, operators, *fast, 3, 1e-4), "");
  }
}

TEST_F(LossesWithGradientsTest, WhereTheGradientOfTheLossesIsKnown) {
  expect_joined([](LossGraph& g) { g.gradient(g.filled(0.25)); });
  expect_joined([](LossGraph& g) { g.gradient(g.b.input("dlosses", {DType::float32, {rows}})); });
  // dlosses is computed after the loss: from the labels' weights, or from the logits.
  expect_joined([](LossGraph& g) {
    const ValueId count = g.b.reduce_sum(g.weights, {0}, true);
    g.gradient(g.b.div(g.weights, count));
  });
  expect_joined([](LossGraph& g) { g.gradient(g.b.reduce_sum(g.logits, {1}, false)); });
}

TEST_F(LossesWithGradientsTest, OthersMayReadTheSums) {
  expect_joined([](LossGraph& g) {
    g.b.output("sums", g.sums);
    g.b.output("largest", g.b.add_node("Exp", {g.sums}));
    g.gradient(g.filled(0.5));
    g.b.output("losses", g.losses);
  });
}

TEST_F(LossesWithGradientsTest, NotWhereTheGradientNeedsTheLosses) {
  expect_apart([](LossGraph& g) { g.gradient(g.b.mul(g.losses, g.filled(2))); });
  expect_apart([](LossGraph& g) { g.gradient(g.losses); });
  expect_apart([](LossGraph& g) { g.gradient(g.b.add_node("Exp", {g.b.neg(g.sums)})); });
}

TEST_F(LossesWithGradientsTest, NotOfOtherOperands) {
  expect_apart([](LossGraph& g) {
    g.gradient({g.filled(1), g.b.neg(g.logits), g.labels, g.weights, g.sums}, g.smoothing);
  });
  expect_apart([](LossGraph& g) {
    const ValueId others = g.b.input("other_labels", {DType::int64, {rows}});
    g.gradient({g.filled(1), g.logits, others, g.weights, g.sums}, g.smoothing);
  });
  expect_apart([](LossGraph& g) {
    g.gradient({g.filled(1), g.logits, g.labels, ValueId{}, g.sums}, g.smoothing);
  });
  expect_apart([](LossGraph& g) {
    g.gradient({g.filled(1), g.logits, g.labels, g.weights, g.sums}, 0.2);
  });
  expect_apart([](LossGraph& g) {
    g.gradient({g.filled(1), g.logits, g.labels, g.weights, g.b.neg(g.sums)}, g.smoothing);
  });
  expect_apart([](LossGraph& g) {
    g.gradient({g.filled(1), g.logits, g.labels, g.weights, g.losses}, g.smoothing);
  });
}

// The second gradient of a loss reads the sums of the first.
TEST_F(LossesWithGradientsTest, OneGradientOfEachLoss) {
  LossGraph g(operators);
  g.gradient(g.filled(1));
  g.gradient({g.filled(2), g.logits, g.labels, g.weights, g.sums}, g.smoothing, "twice");
  const Graph graph = g.b.finish();
  auto count = after_micro_batch(graph);
  EXPECT_EQ(count[joined_loss], 1);
  EXPECT_EQ(count["SoftmaxCrossEntropyGrad"], 1);
  EXPECT_EQ(count["SoftmaxCrossEntropy"], 0);
  EXPECT_EQ(program_difference(graph, operators, *fast, 2, 1e-6), "");
}

TEST_F(LossesWithGradientsTest, NotOnTwoDevicesNorWithoutAKernel) {
  LossGraph g(operators);
  g.gradient(g.filled(1));
  const Graph graph = g.b.finish();
  Machine machine(1);
  Placement placement = on_one_device(graph);
  EXPECT_EQ(after_micro_batch(graph, placement, machine.devices)[joined_loss], 1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op->name == "SoftmaxCrossEntropyGrad") placement.nodes[n].device = 1;
  }
  EXPECT_EQ(after_micro_batch(graph, placement, machine.devices)[joined_loss], 0);
  const auto plain = make_test_device(reference_kernels());
  EXPECT_EQ(after_micro_batch(graph, on_one_device(graph), {plain.get()})[joined_loss], 0);
}

TEST_F(LossesWithGradientsTest, CanBeLeftOut) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 3}, Update::sgd);
  options.disabled_passes = {"losses_with_gradients"};
  for (const bool off : {false, true}) {
    const LowerOptions chosen = off ? options : LowerOptions{};
    const Lowered lowered = lower(graph, on_one_device(graph), operators, {fast.get()}, chosen);
    int count = 0;
    for (const Node& node : lowered.graph.nodes) count += node.op->name == joined_loss;
    EXPECT_EQ(count, off ? 0 : 1);
  }
}

// However activations are kept, the step takes no more memory and nothing more crosses.
TEST_F(LossesWithGradientsTest, TakesNoMoreMemory) {
  for (const Graph& graph : {mlp_training(operators, 64, {128, 128, 128, 1000}, Update::adam),
                             convolution_training(operators), attention_training(operators)}) {
    for (const Activations acts :
         {Activations::keep, Activations::recompute, Activations::offload}) {
      Machine machine(1);
      const Placement placement = keeping(graph, acts, 1);
      const auto made = [&](const std::vector<std::string>& off) {
        ProgramOptions program;
        program.lower.disabled_passes = off;
        return make_program(graph, operators, machine.devices, placement, program);
      };
      const OwnProgram one = made({}), two = made({"losses_with_gradients"});
      for (std::size_t d = 0; d < machine.devices.size(); ++d) {
        EXPECT_LE(one.program->plan().memory[d].peak, two.program->plan().memory[d].peak)
            << "device " << d << ", activations " << static_cast<int>(acts);
      }
      const auto transfers = [](const OwnProgram& own) {
        int count = 0;
        for (const Node& node : own.program->lowered().graph.nodes)
          count += node.op->name == "Transfer";
        return count;
      };
      EXPECT_LE(transfers(one), transfers(two));
    }
  }
}

}  // namespace
}  // namespace tandem::testing
