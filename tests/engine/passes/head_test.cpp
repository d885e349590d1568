// Which layer is the last one of a model, what of it changes with its width, and what is refused.
#include "engine/passes/head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HeadPass : public ::testing::Test {
 protected:
  ValueId parameter(const std::string& layer, const std::string& role, const Shape& shape) {
    State state;
    state.name = layer + "." + role;
    state.path = layer + ":" + role;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, shape});
    return g_.state(std::move(state));
  }
  /// As Gemm with transB is imported: the weight is [out, in].
  ValueId gemm(const std::string& layer, ValueId x, std::int64_t out) {
    g_.set_scope({layer + ".Gemm", Phase::forward, {}});
    const ValueId weight = parameter(layer, "weight", {out, g_.shape(x)[1]});
    return g_.add(g_.matmul(x, g_.transpose(weight, {1, 0})), parameter(layer, "bias", {out}));
  }
  ValueId input() { return g_.input("x", {DType::float32, {4, 6}}); }
  static LayerRule rule(const std::string& at = "") {
    LayerRule rule{7, at, {}};
    rule.where.file = "train.toml";
    rule.where.line = 3;
    return rule;
  }
  static std::string refusal(const Graph& graph, const std::vector<LayerRule>& rules) {
    try {
      resized_layers(graph, rules);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  }

  const OperatorSet operators_ = all_operators();
  GraphBuilder g_{operators_};
};

TEST_F(HeadPass, WeightAndBiasOfGemmBehindSoftmax) {
  const ValueId logits = gemm("fc2", g_.add_node("Relu", {gemm("fc1", input(), 5)}), 3);
  g_.output("logits", logits);
  g_.output("p", g_.add_node("Softmax", {logits}, {{"axis", std::int64_t{1}}}));
  const auto resized = resized_layers(g_.finish(), {rule()});
  ASSERT_EQ(resized.size(), 2u);
  EXPECT_EQ(resized[0].name, "fc2.weight");
  EXPECT_EQ(resized[0].shape, (Shape{7, 5}));
  EXPECT_EQ(resized[0].fan_in, 5);
  EXPECT_EQ(resized[1].name, "fc2.bias");
  EXPECT_EQ(resized[1].shape, (Shape{7}));
}

TEST_F(HeadPass, MatMulHasItsWidthOnTheOtherAxis) {
  g_.output("y", g_.matmul(input(), parameter("fc", "weight", {6, 3})));
  const auto resized = resized_layers(g_.finish(), {rule()});
  ASSERT_EQ(resized.size(), 1u);
  EXPECT_EQ(resized[0].shape, (Shape{6, 7}));
  EXPECT_EQ(resized[0].fan_in, 6);
}

TEST_F(HeadPass, ABiasOfSeveralAxesGetsTheWidthOnce) {
  const ValueId product = g_.matmul(input(), parameter("fc", "weight", {6, 1}));
  g_.output("y", g_.add(product, parameter("fc", "bias", {1, 1})));
  const auto resized = resized_layers(g_.finish(), {rule()});
  ASSERT_EQ(resized.size(), 2u);
  EXPECT_EQ(resized[0].shape, (Shape{6, 7}));
  EXPECT_EQ(resized[1].shape, (Shape{1, 7}));
}

TEST_F(HeadPass, AConvolutionWithItsBias) {
  const ValueId x = g_.input("x", {DType::float32, {2, 4, 5, 5}});
  g_.output(
      "maps",
      g_.add_node(
          "Conv", {x, parameter("last", "weight", {3, 4, 1, 1}), parameter("last", "bias", {3})},
          {{"strides", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}, {"dilations", Ints{1, 1}}}));
  const auto resized = resized_layers(g_.finish(), {rule()});
  ASSERT_EQ(resized.size(), 2u);
  EXPECT_EQ(resized[0].shape, (Shape{7, 4, 1, 1}));
  EXPECT_EQ(resized[1].shape, (Shape{7}));
}

TEST_F(HeadPass, SeveralLastLayersAreNamed) {
  const ValueId x = input();
  g_.output("a", gemm("left", x, 3));
  g_.output("b", gemm("right", x, 4));
  const Graph graph = g_.finish();
  const auto resized = resized_layers(graph, {rule("right")});
  ASSERT_EQ(resized.size(), 2u);
  EXPECT_EQ(resized[0].name, "right.weight");
  EXPECT_EQ(resized_layers(graph, {rule("right"), rule("left")}).size(), 4u);
  EXPECT_THAT(refusal(graph, {rule()}), AllOf(HasSubstr("train.toml:3"), HasSubstr("left:weight"),
                                              HasSubstr("right:weight"), HasSubstr("`at`")));
}

TEST_F(HeadPass, RefusesALayerInTheMiddle) {
  g_.output("y", gemm("fc2", g_.add_node("Relu", {gemm("fc1", input(), 5)}), 3));
  EXPECT_THAT(refusal(g_.finish(), {rule("fc1")}),
              AllOf(HasSubstr("fc1:weight"), HasSubstr("feeds more than the model's outputs"),
                    HasSubstr("fc2.Gemm (MatMul)")));
}

TEST_F(HeadPass, RefusesOutputsThatNoProductMakes) {
  const ValueId x = input();
  g_.set_scope({"sum.Add", Phase::forward, {}});
  g_.output("y", g_.add(gemm("a", x, 6), x));
  EXPECT_THAT(
      refusal(g_.finish(), {rule()}),
      AllOf(HasSubstr("y"), HasSubstr("there is no such layer before"), HasSubstr("(Add)")));
}

TEST_F(HeadPass, RefusesTiedWeightsAndOtherNames) {
  const ValueId x = input(), weight = parameter("tied", "weight", {6, 6});
  g_.output("y", g_.matmul(g_.matmul(x, weight), weight));
  const Graph graph = g_.finish();
  EXPECT_THAT(refusal(graph, {rule()}), HasSubstr("other operators read the weight"));
  EXPECT_THAT(refusal(graph, {rule("tide:weight")}),
              AllOf(HasSubstr("matches no parameter"), HasSubstr("did you mean \"tied:weight\"?")));
}

}  // namespace
}  // namespace tandem
