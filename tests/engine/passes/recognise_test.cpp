// The chains that exporters write become one operator each, with the same values.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/graph/builder.h"
#include "engine/passes/pass.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

class RecogniseTest : public ::testing::Test {
 protected:
  OperatorSet operators_ = all_operators();

  int count(const Graph& graph, std::string_view op) {
    int found = 0;
    for (const Node& node : graph.nodes) found += node.op->name == op;
    return found;
  }
  HostTensor random(const Shape& shape, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    HostTensor tensor(TensorType{DType::float32, shape});
    for (float& x : tensor.as<float>()) x = uniform(engine);
    return tensor;
  }
  /// Runs all passes, expects `op` once, and equal outputs on random feeds.
  void expect_recognised(const Graph& graph, std::string_view op) {
    PassContext context{operators_, {}, {}, {}};
    const Graph after = run_passes(graph, context);
    EXPECT_EQ(count(after, op), 1) << to_text(after);
    std::vector<std::pair<std::string, HostTensor>> feeds;
    unsigned seed = 1;
    for (const NamedValue& input : graph.inputs) {
      feeds.emplace_back(input.name, random(graph.type(input.value).shape, seed++));
    }
    const auto want = testing::evaluate(graph, feeds, {graph.outputs[0].value});
    const auto got = testing::evaluate(after, feeds, {after.outputs[0].value});
    EXPECT_EQ(testing::compare(got[0], want[0], 1e-5), "");
  }
  ValueId number(GraphBuilder& g, double value) { return g.scalar(value, DType::float32); }
};

TEST_F(RecogniseTest, GeluFromErf) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {3, 5}});
  const ValueId erf = g.add_node("Erf", {g.div(x, number(g, std::sqrt(2.0)))});
  g.output("y", g.mul(g.mul(x, g.add(erf, number(g, 1))), number(g, 0.5)));
  expect_recognised(g.finish(), "Gelu");
}

TEST_F(RecogniseTest, GeluFromTanh) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {3, 5}});
  const ValueId cube = g.add_node("Pow", {x, number(g, 3)});
  const ValueId inner =
      g.mul(g.add(x, g.mul(cube, number(g, 0.044715))), number(g, std::sqrt(2 / M_PI)));
  const ValueId tanh = g.add_node("Tanh", {inner});
  g.output("y", g.mul(g.mul(number(g, 0.5), x), g.add(number(g, 1), tanh)));
  expect_recognised(g.finish(), "Gelu");
}

TEST_F(RecogniseTest, LayerNormalizationFromMeans) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {4, 6}});
  const ValueId scale = g.input("scale", {DType::float32, {6}}),
                bias = g.input("bias", {DType::float32, {6}});
  const ValueId d = g.sub(x, g.reduce_mean(x, {1}, true));
  const ValueId variance = g.reduce_mean(g.add_node("Pow", {d, number(g, 2)}), {1}, true);
  const ValueId root = g.add_node("Sqrt", {g.add(variance, number(g, 1e-5))});
  g.output("y", g.add(g.mul(g.div(d, root), scale), bias));
  expect_recognised(g.finish(), "LayerNormalization");
}

TEST_F(RecogniseTest, CausalAttentionWithScaledOperands) {
  GraphBuilder g(operators_);
  const TensorType type{DType::float32, {2, 3, 4, 5}};
  const ValueId q = g.input("q", type), k = g.input("k", type), v = g.input("v", type);
  std::vector<float> mask(16, 0);
  for (int i = 0; i < 4; ++i) {
    for (int j = i + 1; j < 4; ++j) mask[i * 4 + j] = -std::numeric_limits<float>::infinity();
  }
  const ValueId scores =
      g.matmul(g.mul(q, number(g, 0.6)), g.mul(g.transpose_last_two(k), number(g, 0.6)));
  const ValueId masked = g.add(scores, g.constant(HostTensor::from<float>({4, 4}, mask)));
  const ValueId p = g.add_node("Softmax", {masked}, {{"axis", std::int64_t{3}}});
  g.output("y", g.matmul(p, v));
  expect_recognised(g.finish(), "Attention");
}

TEST_F(RecogniseTest, PassesCanBeSwitchedOff) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {3, 5}});
  const ValueId erf = g.add_node("Erf", {g.div(x, number(g, std::sqrt(2.0)))});
  g.output("y", g.mul(g.mul(x, g.add(erf, number(g, 1))), number(g, 0.5)));
  PassContext context{operators_, {}, {}, {}};
  EXPECT_EQ(count(run_passes(g.finish(), context, {"recognise_gelu"}), "Gelu"), 0);
}

}  // namespace
}  // namespace tandem
