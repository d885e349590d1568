// What the passes make of small networks: epilogues, fusion, grouped updates, views and layouts.
#include "engine/lower/lowered.h"

#include <gtest/gtest.h>

#include <map>
#include <span>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/operators/operator.h"
#include "kernels/reference/reference_kernels.h"
#include "tests/harness/program_check.h"
#include "tests/harness/test_device.h"
#include "tests/harness/test_graphs.h"

namespace tandem::testing {
namespace {

class LowerTest : public ::testing::Test {
 protected:
  Lowered lower_on(const Graph& graph, Device& device, const LowerOptions& options = {}) {
    return lower(graph, on_one_device(graph), operators, {&device}, options);
  }

  // Kernel calls by operator.
  static std::map<std::string, int> calls(const Lowered& lowered) {
    std::map<std::string, int> result;
    for (std::size_t n = 0; n < lowered.nodes.size(); ++n) {
      if (lowered.nodes[n].kernel != nullptr) ++result[lowered.graph.nodes[n].op->name];
    }
    return result;
  }

  const OperatorSet operators = all_operators();
  std::unique_ptr<Device> plain = make_test_device(reference_kernels());
  std::unique_ptr<Device> fast = make_test_device(reference_kernels_as_fast());
  std::unique_ptr<Device> channels_last = make_test_device(channels_last_kernels());
};

TEST_F(LowerTest, PlainSgdIsTheWeightGradientProduct) {
  auto count = calls(lower_on(mlp_training(operators, 4, {7, 6, 5, 3}, Update::sgd), *fast));
  EXPECT_EQ(count["GemmSgd"], 3);
  EXPECT_EQ(count["Gemm"], 5);  // three layers, two data gradients through Relu
  EXPECT_EQ(count["MatMul"], 0);
  EXPECT_EQ(count["SgdUpdate"], 0);
  EXPECT_EQ(count["GroupedUpdate"], 1);  // the biases
  EXPECT_EQ(count["Copy"], 0);
  EXPECT_EQ(count["Transpose"], 0);
}

// W = A B: the gradient of A reads B, and that of B reads A. W = A Aᵀ: that of A reads A.
TEST_F(LowerTest, WeightsThatReadEachOtherKeepTheirGradients) {
  for (const bool tied : {false, true}) {
    GraphBuilder b(operators);
    const ValueId x = b.input("x", {DType::float32, {4, 5}});
    const ValueId lr = b.input("lr", {DType::float32, {}});
    const ValueId step = b.input("step", {DType::int64, {}});
    const ValueId skip = b.filled(0.0, {DType::boolean, {}});
    std::vector<ValueId> weights;
    const auto weight = [&](const std::string& name, const Shape& shape) {
      State state;
      state.name = name;
      state.start = HostTensor::from(
          shape, std::vector<float>(static_cast<std::size_t>(element_count(shape)), 0.5f));
      weights.push_back(b.state(std::move(state)));
      return weights.back();
    };
    const ValueId first = weight("A", {5, 3});
    const ValueId second = tied ? b.transpose_last_two(first) : weight("B", {3, 5});
    const ValueId y = b.matmul(x, b.matmul(first, second));
    b.output("y", y);
    const GradientSeed seed{y, b.filled(1.0, b.type(y))};
    const std::vector<ValueId> gradients = add_gradients(b, std::span(&seed, 1), weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto out = b.node("SgdUpdate", {weights[i], gradients[i], ValueId{}, lr, step,
                                            b.scalar(1, DType::float32), skip});
      b.write_state(weights[i], out[0]);
    }
    const Graph graph = b.finish();
    EXPECT_EQ(calls(lower_on(graph, *fast))["GemmSgd"], 0);
    EXPECT_EQ(program_difference(graph, operators, *fast, 2, 1e-5), "");
  }
}

TEST_F(LowerTest, StatesThatNeedEachOthersOldValuesAreRefused) {
  GraphBuilder b(operators);
  std::vector<ValueId> states;
  for (const std::string name : {"a", "b"}) {
    State state;
    state.name = name;
    state.start = HostTensor::from<float>({2}, {1, 2});
    states.push_back(b.state(std::move(state)));
  }
  b.write_state(states[0], b.add_node("Exp", {states[1]}));
  b.write_state(states[1], b.add_node("Exp", {states[0]}));
  b.output("y", b.add_node("Neg", {states[0]}));
  const Graph graph = b.finish();
  try {
    lower_on(graph, *fast);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("wait for each other"), std::string::npos)
        << error.what();
  }
}

TEST_F(LowerTest, MomentumKeepsTheGradient) {
  auto count = calls(lower_on(mlp_training(operators, 4, {7, 6, 5, 3}, Update::momentum), *fast));
  EXPECT_EQ(count["GemmSgd"], 0);
  EXPECT_EQ(count["MatMul"], 3);
  EXPECT_EQ(count["GroupedUpdate"], 1);
}

TEST_F(LowerTest, WithoutFastKernelsNothingIsMerged) {
  const Lowered lowered = lower_on(mlp_training(operators, 4, {7, 6, 5, 3}, Update::sgd), *plain);
  auto count = calls(lowered);
  EXPECT_EQ(count["Gemm"] + count["GemmSgd"] + count["Fused"] + count["GroupedUpdate"], 0);
  bool noted = false;
  for (const std::string& note : lowered.notes)
    noted |= note.find("reference kernels") != std::string::npos;
  EXPECT_TRUE(noted);
}

TEST_F(LowerTest, LargeUpdatesStayAloneAndRunRightAfterTheirGradient) {
  const Graph graph = mlp_training(operators, 4, {300, 300, 3}, Update::momentum);
  const Lowered lowered = lower_on(graph, *fast);
  EXPECT_EQ(calls(lowered)["SgdUpdate"], 1);
  for (std::size_t n = 1; n < lowered.graph.nodes.size(); ++n) {
    const Node& node = lowered.graph.nodes[n];
    if (node.op->name != "SgdUpdate") continue;
    EXPECT_EQ(lowered.graph.value(node.inputs[1]).producer.index, static_cast<std::int32_t>(n) - 1);
  }
}

TEST_F(LowerTest, AttentionNeedsNoCopies) {
  const Lowered lowered = lower_on(attention_training(operators), *fast);
  auto count = calls(lowered);
  for (const char* view :
       {"Reshape", "Transpose", "Slice", "Split", "Expand", "Identity", "Concat", "Copy"}) {
    EXPECT_EQ(count[view], 0) << view << "\n" << to_text(lowered);
  }
}

TEST_F(LowerTest, GradientsOfSlicesAreWrittenInPlace) {
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, {4, 6}});
  const ValueId left = b.add_node("Tanh", {x});
  const ValueId right = b.add_node("Exp", {x});
  const ValueId y = b.add_node("Concat", {left, right}, {{"axis", std::int64_t{1}}});
  b.output("sum", b.reduce_sum(b.matmul(y, b.filled(1, {DType::float32, {12, 2}})), {0, 1}, false));
  const Graph graph = b.finish();
  const Lowered lowered = lower_on(graph, *plain);
  auto count = calls(lowered);
  EXPECT_EQ(count["Concat"] + count["Copy"], 0);
  EXPECT_EQ(program_difference(graph, operators, *plain, 2, 1e-6), "");
}

TEST_F(LowerTest, ConvolutionGroupTakesChannelsLastAsAWhole) {
  const Graph graph = convolution_training(operators);
  const Lowered lowered = lower_on(graph, *channels_last);
  int copies = 0;
  for (std::size_t n = 0; n < lowered.nodes.size(); ++n) {
    const Node& node = lowered.graph.nodes[n];
    if (lowered.nodes[n].kernel == nullptr) continue;
    copies += node.op->name == "Copy";
    for (ValueId output : node.outputs) {
      const TensorType& type = lowered.graph.type(output);
      if (type.rank() != 4 || node.op->name == "MaxPool" || node.op->name == "ReduceMean") continue;
      EXPECT_TRUE(is_channels_last(lowered.values[output.index].layout, type.shape))
          << node.op->name << node.path;
    }
  }
  EXPECT_EQ(copies, 1) << to_text(lowered);  // the input
  for (std::size_t s = 0; s < lowered.states.size(); ++s) {
    const Shape& shape = graph.type(graph.states[s].initial).shape;
    if (shape.size() != 4) continue;
    EXPECT_TRUE(is_channels_last(lowered.states[s].layout, shape)) << graph.states[s].name;
  }
}

TEST_F(LowerTest, FixedStateLayoutsAreKept) {
  const Graph graph = convolution_training(operators);
  LowerOptions options;
  for (const State& state : graph.states) {
    options.fixed_layouts.emplace_back(state.name, row_major(graph.type(state.initial).shape));
  }
  const Lowered lowered = lower_on(graph, *channels_last, options);
  for (std::size_t s = 0; s < lowered.states.size(); ++s) {
    EXPECT_TRUE(is_row_major(lowered.states[s].layout, graph.type(graph.states[s].initial).shape));
  }
}

TEST_F(LowerTest, ChainsFuseButNotAcrossAProduct) {
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, {4, 4}});
  const ValueId a = b.add_node("Exp", {b.add_node("Neg", {x})});
  const ValueId y = b.mul(a, b.matmul(a, a));  // the product needs `a` before `y` can be computed
  b.output("y", b.add_node("Sqrt", {y}));
  const Graph graph = b.finish();
  const Lowered lowered = lower_on(graph, *fast);
  EXPECT_EQ(calls(lowered)["Fused"], 2);
  EXPECT_EQ(calls(lowered)["MatMul"], 1);
  EXPECT_EQ(program_difference(graph, operators, *fast, 1, 1e-5), "");
}

TEST_F(LowerTest, ReductionEndsAFusedNode) {
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, {4, 5}});
  const ValueId y = b.add_node("Exp", {b.mul(x, x)});
  b.output("rows", b.reduce_sum(y, {1}, false));
  const Graph graph = b.finish();
  const Lowered lowered = lower_on(graph, *fast);
  EXPECT_EQ(calls(lowered).size(), 1u) << to_text(lowered);
  EXPECT_EQ(calls(lowered)["Fused"], 1);
}

TEST_F(LowerTest, ReaderOfAReductionAndOfWhatItReducesIsANodeBehindIt) {
  for (const Ints& axes : {Ints{1}, Ints{0, 1}}) {
    GraphBuilder b(operators);
    const ValueId e = b.add_node("Exp", {b.input("x", {DType::float32, {4, 5}})});
    const ValueId softmax = b.div(e, b.reduce_sum(e, axes, true));
    b.output("y", b.mul(softmax, e));
    const Graph graph = b.finish();
    const Lowered lowered = lower_on(graph, *fast);
    EXPECT_EQ(calls(lowered)["Fused"], 2) << to_text(lowered);
    EXPECT_EQ(program_difference(graph, operators, *fast, 1, 1e-5), "");
  }
}

TEST_F(LowerTest, ElementWiseResultsReuseWhatDies) {
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, {4, 5}});
  const ValueId w = b.filled(0.5, {DType::float32, {5, 5}});
  b.output("y", b.matmul(b.add_node("Tanh", {b.matmul(x, w)}), w));
  const Graph graph = b.finish();
  const Lowered lowered = lower_on(graph, *plain);
  for (std::size_t n = 0; n < lowered.nodes.size(); ++n) {
    if (lowered.graph.nodes[n].op->name != "Tanh") continue;
    EXPECT_EQ(lowered.nodes[n].in_place, std::vector<int>{0});
  }
}

TEST_F(LowerTest, OutputsAreRowMajorBuffersOfTheirOwn) {
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, {4, 5}});
  const ValueId y = b.add_node("Tanh", {x});
  b.output("input", x);
  b.output("y", y);
  b.output("again", y);
  b.output("transposed", b.transpose(y, {1, 0}));
  const Graph graph = b.finish();
  const Lowered lowered = lower_on(graph, *plain);
  for (const NamedValue& output : lowered.graph.outputs) {
    const LoweredValue& value = lowered.values[output.value.index];
    EXPECT_EQ(value.layout.offset, 0);
    EXPECT_TRUE(is_row_major(value.layout, lowered.graph.type(output.value).shape));
  }
  EXPECT_EQ(program_difference(graph, operators, *plain, 2, 0), "");
}

}  // namespace
}  // namespace tandem::testing
