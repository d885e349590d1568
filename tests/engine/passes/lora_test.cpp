// Where adapters go in a graph, what they start from, and which rules are refused.
#include "engine/passes/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/graph/builder.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoraPass : public ::testing::Test {
 protected:
  LoraPass() {
    request_.draw = [this](const std::string& name, const TensorType& type, double bound) {
      bounds_[name] = bound;
      return filled(type.shape, 0.01);
    };
  }
  static HostTensor filled(const Shape& shape, double step) {
    HostTensor tensor(TensorType{DType::float32, shape});
    int i = 0;
    for (float& x : tensor.as<float>()) x = static_cast<float>(step * (i++ % 17 - 8));
    return tensor;
  }
  ValueId parameter(GraphBuilder& g, const std::string& layer, const std::string& role,
                    const Shape& shape) {
    State state;
    state.name = layer + "." + role;
    state.path = layer + ":" + role;
    state.trainable = true;
    state.start = filled(shape, 0.1);
    return g.state(std::move(state));
  }
  /// x [4, 6] times fc1, stored [6, 5], and fc2, stored [3, 5]; then a scale that is no product.
  Graph network() {
    GraphBuilder g(operators_);
    ValueId x = g.input("x", {DType::float32, {4, 6}});
    g.set_scope({"fc1.MatMul", Phase::forward, {}});
    x = g.matmul(x, parameter(g, "fc1", "weight", {6, 5}));
    g.set_scope({"fc2.Gemm", Phase::forward, {}});
    const ValueId weight = parameter(g, "fc2", "weight", {3, 5});
    x = g.add(g.matmul(x, g.transpose(weight, {1, 0})), parameter(g, "fc2", "bias", {3}));
    g.set_scope({"norm.Mul", Phase::forward, {}});
    g.output("y", g.mul(x, parameter(g, "norm", "weight", {3})));
    return g.finish();
  }
  void rule(const std::string& at, std::int64_t rank = 2) {
    AdapterRule& added = request_.rules.emplace_back();
    added.at = at;
    added.rank = rank;
    added.alpha = 6;
    added.where.file = "train.toml";
    added.where.line = 7;
  }
  std::string refusal(const Graph& graph) {
    try {
      add_lora(graph, operators_, request_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  }
  /// Adapters that are not zero, as nodes of the graph and in its weights.
  void expect_merged_computes_the_same();

  const OperatorSet operators_ = all_operators();
  LoraRequest request_;
  std::map<std::string, double> bounds_;
};

TEST_F(LoraPass, StartsAsTheModelItWas) {
  rule("fc*");
  const Graph before = network(), after = add_lora(before, operators_, request_);
  verify(after);
  const std::vector<std::pair<std::string, HostTensor>> feeds{{"x", filled({4, 6}, 0.3)}};
  const auto want = testing::evaluate(before, feeds, {before.outputs[0].value});
  const auto got = testing::evaluate(after, feeds, {after.outputs[0].value});
  EXPECT_EQ(testing::compare(got[0], want[0], 0), "");
  EXPECT_EQ(after.find_state("fc1.weight/lora_a")->start.shape(), (Shape{6, 2}));
  EXPECT_EQ(after.find_state("fc1.weight/lora_b")->start.shape(), (Shape{2, 5}));
  EXPECT_EQ(after.find_state("fc2.weight/lora_a")->start.shape(), (Shape{2, 5}));
  EXPECT_EQ(after.find_state("fc2.weight/lora_b")->start.shape(), (Shape{3, 2}));
  EXPECT_EQ(after.find_state("fc2.weight/lora_b")->path, "fc2:weight/lora_b");
  // kaiming_uniform with a = sqrt(5): sqrt(6 / ((1 + 5) fan_in)).
  EXPECT_DOUBLE_EQ(bounds_["fc1.weight/lora_a"], 1 / std::sqrt(6.0));
  EXPECT_DOUBLE_EQ(bounds_["fc2.weight/lora_a"], 1 / std::sqrt(5.0));
}

TEST_F(LoraPass, EverythingElseIsFrozenAndHeldByTheModel) {
  rule("fc1:weight");
  request_.train = {{"fc2:bias", {}}};
  const Graph after = add_lora(network(), operators_, request_);
  for (const State& state : after.states) {
    const bool trains = state.name.find("/lora_") != std::string::npos || state.name == "fc2.bias";
    EXPECT_EQ(state.trainable, trains) << state.name;
    EXPECT_EQ(state.held_by, trains ? HeldBy::checkpoint : HeldBy::model) << state.name;
  }
}

TEST_F(LoraPass, MergedIsWhatTheGraphComputes) {
  rule("fc*");
  expect_merged_computes_the_same();
}

TEST_F(LoraPass, RankStabilisedAdaptersAreDividedByTheRootOfTheRank) {
  rule("fc1", 4);
  rule("fc2", 2);
  EXPECT_DOUBLE_EQ(request_.rules[0].scale(), 1.5);  // 6 / 4
  request_.rules[0].rslora = true;
  EXPECT_DOUBLE_EQ(request_.rules[0].scale(), 3);  // 6 / sqrt(4)
  expect_merged_computes_the_same();
}

void LoraPass::expect_merged_computes_the_same() {
  Graph graph = network(), adapted = add_lora(graph, operators_, request_);
  for (State& state : adapted.states) {
    if (state.name.ends_with("/lora_b")) state.start = filled(state.start.shape(), 0.2);
  }
  for (const AdaptedWeight& weight : adapted_weights(graph, request_.rules)) {
    for (State& state : graph.states) {
      if (state.name == weight.name)
        state.start = merged_weight(
            weight, state.start,
            {adapted.find_state(weight.a())->start, adapted.find_state(weight.b())->start});
    }
  }
  const std::vector<std::pair<std::string, HostTensor>> feeds{{"x", filled({4, 6}, 0.3)}};
  const auto want = testing::evaluate(adapted, feeds, {adapted.outputs[0].value});
  const auto got = testing::evaluate(graph, feeds, {graph.outputs[0].value});
  EXPECT_EQ(testing::compare(got[0], want[0], 1e-5), "");
}

TEST_F(LoraPass, TheLastRuleThatCoversAWeightCounts) {
  rule("fc*", 2);
  rule("fc2", 3);
  const auto weights = adapted_weights(network(), request_.rules);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].rule.rank, 2);
  EXPECT_EQ(weights[1].rule.rank, 3);
}

std::vector<std::string> names_of(const std::vector<AdaptedWeight>& weights) {
  std::vector<std::string> names;
  for (const AdaptedWeight& weight : weights) names.push_back(weight.name);
  return names;
}

TEST_F(LoraPass, AllLinearIsEveryProductButTheLast) {
  rule("all-linear");
  EXPECT_THAT(names_of(adapted_weights(network(), request_.rules)), ElementsAre("fc1.weight"));
  rule("fc2", 3);  // a later rule may add the last one
  const auto weights = adapted_weights(network(), request_.rules);
  EXPECT_THAT(names_of(weights), ElementsAre("fc1.weight", "fc2.weight"));
  EXPECT_EQ(weights[1].rule.rank, 3);
}

// A table that is the last layer's weight as well, a convolution, and outputs along the way: one
// that the rest of the network reads, one that ends in no product.
TEST_F(LoraPass, AllLinearLeavesTablesAndConvolutionsOut) {
  GraphBuilder g(operators_);
  const ValueId table = parameter(g, "words", "weight", {7, 6});
  const ValueId ids = g.input("ids", {DType::int64, {4, 3}});
  const ValueId words = g.add_node("Gather", {table, ids}, {{"axis", std::int64_t{0}}});
  const ValueId picture =
      g.add_node("Conv", {g.reshape(words, {4, 3, 6}), parameter(g, "conv", "weight", {3, 3, 1})},
                 {{"strides", Ints{1}}, {"pads", Ints{0, 0}}, {"dilations", Ints{1}}});
  const ValueId hidden = g.matmul(picture, parameter(g, "fc1", "weight", {6, 5}));
  const ValueId more = g.matmul(hidden, parameter(g, "fc2", "weight", {5, 6}));
  const ValueId sum = g.add(more, words);
  g.output("hidden", hidden);
  g.output("sum", sum);
  g.output("logits", g.matmul(sum, g.transpose(table, {1, 0})));
  rule("all-linear");
  EXPECT_THAT(names_of(adapted_weights(g.finish(), request_.rules)),
              ElementsAre("fc1.weight", "fc2.weight"));
}

TEST_F(LoraPass, AWeightOfSeveralProductsHasOnePairOfAdapters) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {4, 5}});
  const ValueId weight = parameter(g, "tied", "weight", {5, 5});
  g.output("y", g.matmul(g.add_node("Relu", {g.matmul(x, weight)}), weight));
  rule("tied");
  const Graph after = add_lora(g.finish(), operators_, request_);
  EXPECT_EQ(after.states.size(), 3u);
}

TEST_F(LoraPass, RefusesRulesThatDoNotFit) {
  rule("fc3:weight");
  EXPECT_THAT(refusal(network()),
              AllOf(HasSubstr("train.toml:7"), HasSubstr("matches no parameter"),
                    HasSubstr("did you mean")));
  request_.rules.clear();
  rule("norm:weight");
  EXPECT_THAT(refusal(network()),
              AllOf(HasSubstr("norm:weight"), HasSubstr("no product reads this parameter"),
                    HasSubstr("norm.Mul (Mul)")));
  request_.rules.clear();
  rule("fc1", 6);
  EXPECT_THAT(refusal(network()), AllOf(HasSubstr("fc1:weight"), HasSubstr("a rank of 1 to 5")));
  request_.rules.clear();
  rule("fc1", 0);
  EXPECT_THAT(refusal(network()), HasSubstr("a rank of 1 to 5"));
  request_.rules.clear();
  rule("all-linear");
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {4, 6}});
  g.output("y", g.matmul(x, parameter(g, "only", "weight", {6, 5})));
  EXPECT_THAT(refusal(g.finish()),
              AllOf(HasSubstr("train.toml:7"), HasSubstr("the model has no such weight"),
                    HasSubstr("before the output layer")));
  request_.rules.clear();
  rule("fc1");
  request_.train = {{"fc2:bais", {}}};
  EXPECT_THAT(refusal(network()),
              AllOf(HasSubstr("parameters.train"), HasSubstr("did you mean \"fc2:bias\"?")));
}

TEST_F(LoraPass, RefusesAWeightThatOthersReadInAnotherWay) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {4, 5}});
  const ValueId weight = parameter(g, "tied", "weight", {5, 5});
  g.output("y", g.matmul(g.matmul(x, weight), g.transpose(weight, {1, 0})));
  rule("tied");
  EXPECT_THAT(refusal(g.finish()), HasSubstr("read as it is and transposed"));
}

}  // namespace
}  // namespace tandem
