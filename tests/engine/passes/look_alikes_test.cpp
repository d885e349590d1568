// Chains that only look like those that the passes recognise keep their meaning, while those that
// exporters write are recognised.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "engine/graph/builder.h"
#include "engine/passes/pass.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float lowest = std::numeric_limits<float>::lowest();

class LookAlikes : public ::testing::Test {
 protected:
  static HostTensor random(const Shape& shape, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    HostTensor tensor(TensorType{DType::float32, shape});
    for (float& x : tensor.as<float>()) x = uniform(engine);
    return tensor;
  }
  ValueId number(double value, DType dtype = DType::float32) { return g_->scalar(value, dtype); }
  ValueId numbers(const Shape& shape, float value) {
    return g_->filled(value, {DType::float32, shape});
  }
  ValueId input(const std::string& name, const Shape& shape) {
    return g_->input(name, {DType::float32, shape});
  }

  Graph passed(const Graph& graph) {
    PassContext context{operators_, {}, {}, {}};
    return run_passes(graph, context);
  }
  static std::vector<const Node*> of(const Graph& graph, std::string_view op) {
    std::vector<const Node*> found;
    for (const Node& node : graph.nodes) {
      if (node.op->name == op) found.push_back(&node);
    }
    return found;
  }

  /// Runs all passes on a float32 graph with output y: `many` nodes `op` remain, and the numbers
  /// are the same, with NaN in the same places. Returns the graph after them.
  Graph expect(ValueId y, std::string_view op, std::size_t many) {
    g_->output("y", y);
    const Graph before = g_->finish();
    g_.emplace(operators_);
    const Graph after = passed(before);
    EXPECT_EQ(of(after, op).size(), many) << to_text(after);
    std::vector<std::pair<std::string, HostTensor>> feeds;
    unsigned seed = 1;
    for (const NamedValue& fed : before.inputs)
      feeds.emplace_back(fed.name, random(before.type(fed.value).shape, seed++));
    const HostTensor want = testing::evaluate(before, feeds, {before.outputs[0].value}).at(0);
    const HostTensor got = testing::evaluate(after, feeds, {after.outputs[0].value}).at(0);
    EXPECT_EQ(got.type(), want.type());
    if (got.type() != want.type()) return after;
    for (std::int64_t i = 0; i < want.type().elements(); ++i) {
      const double a = got.number(i), b = want.number(i);
      EXPECT_TRUE(std::isnan(b) ? std::isnan(a) : std::abs(a - b) <= 1e-6)
          << a << " for " << b << " at " << i;
    }
    return after;
  }

  ValueId attention(ValueId scores, ValueId v) {
    return g_->matmul(g_->add_node("Softmax", {scores}, {{"axis", std::int64_t{3}}}), v);
  }
  /// softmax(q kT + mask) v of one batch with one head.
  ValueId attention(std::int64_t queries, std::int64_t keys, const Shape& shape,
                    const std::vector<float>& mask, bool fed = false) {
    const ValueId k = input("k", {1, 1, keys, 4});
    const ValueId scores = g_->matmul(input("q", {1, 1, queries, 4}), g_->transpose_last_two(k));
    const ValueId added =
        fed ? input("mask", shape) : g_->constant(HostTensor::from<float>(shape, mask));
    const std::int64_t seen = shape.empty() ? keys : std::max(keys, shape.back());
    return attention(g_->add(scores, added), input("v", {1, 1, seen, 4}));
  }
  /// Attention as exporters write PyTorch's: weights that are not numbers become 0.
  ValueId guarded_attention(std::int64_t queries, std::int64_t keys, ValueId mask) {
    const ValueId k = input("k", {1, 1, keys, 4});
    const ValueId scores = g_->matmul(input("q", {1, 1, queries, 4}), g_->transpose_last_two(k));
    const ValueId p = g_->add_node("Softmax", {g_->add(scores, mask)}, {{"axis", std::int64_t{3}}});
    const ValueId y = g_->add_node("Where", {g_->add_node("IsNaN", {p}), number(0), p});
    return g_->matmul(y, input("v", {1, 1, keys, 4}));
  }
  /// Where(x > 0, 0, hidden) of a fed x.
  ValueId computed_mask(const Shape& shape, float hidden) {
    const ValueId seen = g_->add_node("Greater", {input("mask", shape), number(0)});
    return g_->add_node("Where", {seen, number(0), number(hidden)});
  }
  static std::vector<float> causal(std::int64_t queries, std::int64_t keys, float hidden) {
    std::vector<float> mask;
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) mask.push_back(j <= i + keys - queries ? 0 : hidden);
    }
    return mask;
  }

  ValueId gelu(double half, double one, double root) {
    const ValueId x = input("x", {3, 5});
    const ValueId erf = g_->add_node("Erf", {g_->div(x, number(root))});
    return g_->mul(g_->mul(x, g_->add(erf, number(one))), number(half));
  }
  ValueId tanh_gelu(double outer, double cubic, double exponent) {
    const ValueId x = input("x", {3, 5});
    const ValueId cube = g_->mul(g_->add_node("Pow", {x, number(exponent)}), number(cubic));
    const ValueId tanh = g_->add_node("Tanh", {g_->mul(g_->add(x, cube), number(outer))});
    return g_->mul(g_->mul(x, number(0.5)), g_->add(tanh, number(1)));
  }
  /// d / sqrt(mean(d'^exponent) + epsilon) * scale over `axes`, d and d' less their means over
  /// axes of their own.
  ValueId normalised(const Shape& shape, const Ints& axes, const Ints& inner, ValueId exponent,
                     ValueId epsilon) {
    const ValueId x = input("x", shape);
    const ValueId d = g_->sub(x, g_->reduce_mean(x, axes, true));
    const ValueId other = inner == axes ? d : g_->sub(x, g_->reduce_mean(x, inner, true));
    const ValueId variance = g_->reduce_mean(g_->add_node("Pow", {other, exponent}), axes, true);
    const ValueId root = g_->add_node("Sqrt", {g_->add(variance, epsilon)});
    const Shape scale(shape.begin() + axes[0], shape.end());
    return g_->mul(g_->div(d, root), input("scale", scale));
  }

  OperatorSet operators_ = all_operators();
  std::optional<GraphBuilder> g_{operators_};
};

TEST_F(LookAlikes, CausalMasks) {
  for (const float hidden : {lowest, -infinity}) {
    for (const std::int64_t keys : {3, 5}) {
      const Graph after =
          expect(attention(3, keys, {3, keys}, causal(3, keys, hidden)), "Attention", 1);
      EXPECT_EQ(of(after, "Attention").at(0)->attributes.integer("causal"), 1);
    }
  }
}

TEST_F(LookAlikes, CausalMasksThatHideWholeRows) {
  for (const float hidden : {lowest, -infinity}) {
    expect(attention(2, 1, {2, 1}, causal(2, 1, hidden)), "Attention", 0);
    expect(attention(3, 2, {1, 1, 3, 2}, causal(3, 2, hidden)), "Attention", 0);
  }
}

TEST_F(LookAlikes, CausalMasksOfSmallerNumbersAreAdded) {
  const Graph after = expect(attention(3, 3, {3, 3}, causal(3, 3, -1e30f)), "Attention", 1);
  EXPECT_EQ(of(after, "Attention").at(0)->attributes.integer("causal"), 0);
}

TEST_F(LookAlikes, ConstantMasks) {
  expect(attention(2, 3, {2, 3}, {0, -infinity, 1, lowest, 0, 0}), "Attention", 1);
  expect(attention(2, 3, {3}, {0, -infinity, 2}), "Attention", 1);
  for (const float hidden : {-infinity, lowest, -1e9f, -1e4f}) {
    expect(attention(2, 3, {2, 3}, {0, hidden, 0, hidden, hidden, hidden}), "Attention", 0);
    expect(attention(2, 3, {2, 1}, {0, hidden}), "Attention", 0);
    expect(attention(2, 3, {}, {hidden}), "Attention", 0);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect(attention(2, 3, {2, 3}, {0, nan, 0, 0, 0, 0}), "Attention", 0);
}

TEST_F(LookAlikes, MasksThatAreFed) { expect(attention(2, 3, {2, 3}, {}, true), "Attention", 0); }

// Rows that see nothing are 0 in both, so that any mask will do: of -infinity, fed or computed.
TEST_F(LookAlikes, WeightsThatAreNoNumbersAre0) {
  expect(guarded_attention(2, 3, input("mask", {2, 3})), "Attention", 1);
  expect(guarded_attention(4, 1, computed_mask({4, 1}, -infinity)), "Attention", 1);
  expect(guarded_attention(4, 1, computed_mask({4, 1}, lowest)), "Attention", 1);
  const ValueId rows =
      g_->constant(HostTensor::from<float>({2, 2}, {-infinity, -infinity, 0, -infinity}));
  expect(guarded_attention(2, 2, rows), "Attention", 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ValueId broken = g_->constant(HostTensor::from<float>({2, 2}, {0, nan, 0, 0}));
  expect(guarded_attention(2, 2, broken), "Attention", 0);
}

// Without that guard a computed mask is recognised only if it chooses one of two finite numbers.
TEST_F(LookAlikes, MasksOfTwoNumbers) {
  const auto add = [&](ValueId mask) {
    const ValueId k = input("k", {1, 1, 3, 4});
    const ValueId scores = g_->matmul(input("q", {1, 1, 2, 4}), g_->transpose_last_two(k));
    return attention(g_->add(scores, mask), input("v", {1, 1, 3, 4}));
  };
  expect(add(computed_mask({2, 3}, lowest)), "Attention", 1);
  expect(add(g_->expand(g_->reshape(computed_mask({3}, lowest), {1, 3}), {2, 3})), "Attention", 1);
  expect(add(computed_mask({2, 3}, -infinity)), "Attention", 0);
}

// Attention gives masks no gradient, which a learned bias of positions needs.
TEST_F(LookAlikes, MasksThatAreLearned) {
  State state;
  state.name = "bias";
  state.trainable = true;
  state.start = random({2, 3}, 3);
  const ValueId bias = g_->state(std::move(state));
  g_->output("y", guarded_attention(2, 3, g_->mul(bias, number(2))));
  EXPECT_TRUE(of(passed(g_->finish()), "Attention").empty());
  g_.emplace(operators_);
}

// What exporters write for scaled_dot_product_attention with a mask.
TEST_F(LookAlikes, GuardsAgainstRowsThatSeeNothing) {
  const auto guarded = [&](const Shape& shape, const std::vector<float>& mask, bool fed,
                           double instead = 0) {
    const ValueId k = g_->transpose_last_two(input("k", {1, 1, 3, 4}));
    const ValueId scores = g_->matmul(input("q", {1, 1, 2, 4}), k);
    ValueId added = g_->constant(HostTensor::from<float>(shape, mask));
    if (fed) {
      // What is fed is between -1 and 1: the second row of {0, 2, -2, -2, -2, -2} sees nothing.
      const ValueId seen = g_->add_node("Less", {input("seen", {1, 1, 2, 3}), added});
      added = g_->add_node("Where", {seen, number(0), number(-infinity)});
    }
    const ValueId p =
        g_->add_node("Softmax", {g_->add(scores, added)}, {{"axis", std::int64_t{3}}});
    const ValueId test = g_->add_node("IsNaN", {p});
    return g_->matmul(g_->add_node("Where", {test, number(instead), p}), input("v", {1, 1, 3, 4}));
  };
  const std::vector<float> hiding{0, -infinity, 0, -infinity, -infinity, -infinity};
  expect(guarded({2, 3}, hiding, false), "Attention", 1);
  expect(guarded({2, 3}, {0, 0, 0, lowest, lowest, lowest}, false), "Attention", 0);
  expect(guarded({2, 3}, hiding, false, 1), "Attention", 0);
  expect(guarded({2, 3}, {0, 2, -2, -2, -2, -2}, true), "Attention", 1);
}

TEST_F(LookAlikes, MasksWiderThanTheScores) {
  expect(attention(2, 5, {3, 1, 2, 5}, std::vector<float>(30, 0.5f)), "Attention", 0);
  expect(attention(2, 5, {1, 3, 2, 5}, std::vector<float>(30, 0.5f)), "Attention", 0);
  expect(attention(1, 5, {3, 5}, std::vector<float>(15, 0.5f)), "Attention", 0);
  expect(attention(2, 1, {2, 5}, std::vector<float>(10, 0.5f)), "Attention", 0);
  expect(attention(1, 5, {3, 5}, causal(3, 5, -infinity)), "Attention", 0);
}

TEST_F(LookAlikes, FactorsOfAttention) {
  const Shape shape{1, 1, 2, 4};
  const auto scaled = [&](ValueId inner, ValueId outer) {
    const ValueId q = g_->mul(input("q", shape), inner);
    const ValueId k = g_->transpose_last_two(input("k", shape));
    return attention(g_->mul(g_->matmul(q, k), outer), input("v", shape));
  };
  expect(scaled(number(0.5), number(0.25)), "Attention", 1);
  expect(scaled(number(0.5), numbers({1, 1, 1, 1}, 0.25f)), "Attention", 1);
  // Factors that are wider than what they multiply.
  expect(scaled(number(0.5), numbers({3, 1, 1, 1}, 0.25f)), "Attention", 0);
  expect(scaled(numbers({3, 1, 1, 1}, 0.5f), number(0.25)), "Attention", 0);
  // The scores overflow in between.
  expect(scaled(number(3e38), number(1e-38)), "Attention", 0);
}

TEST_F(LookAlikes, ConstantsOfGelu) {
  const double root = std::sqrt(2.0);
  expect(gelu(0.5, 1, root), "Gelu", 1);
  expect(gelu(0.5, 1, 1.4142135), "Gelu", 1);
  expect(gelu(0.5004, 1, root), "Gelu", 0);
  expect(gelu(0.50001, 1, root), "Gelu", 0);
  expect(gelu(0.5, 1.00009, root), "Gelu", 0);
  expect(gelu(0.5, 1, 1.4155), "Gelu", 0);
  expect(gelu(0.5, 1, 1.41421), "Gelu", 0);
  expect(gelu(0.5, 1, 1.4140625), "Gelu", 0);  // a float16 in a file of float32
}

TEST_F(LookAlikes, ConstantsOfGeluWithTanh) {
  const double outer = std::sqrt(2 / M_PI);
  expect(tanh_gelu(outer, 0.044715, 3), "Gelu", 1);
  expect(tanh_gelu(0.79788456, 0.044715, 3), "Gelu", 1);
  expect(tanh_gelu(0.7979, 0.044715, 3), "Gelu", 0);
  expect(tanh_gelu(outer, 0.04472, 3), "Gelu", 0);
  expect(tanh_gelu(outer, 0.044715, 3.0001), "Gelu", 0);
}

TEST_F(LookAlikes, ConstantsOfGeluInTheirOwnType) {
  const auto count = [&](DType dtype, double root) {
    GraphBuilder g(operators_);
    const ValueId x = g.input("x", {dtype, {3, 5}});
    const ValueId erf = g.add_node("Erf", {g.div(x, g.scalar(root, dtype))});
    g.output("y", g.mul(g.mul(x, g.add(erf, g.scalar(1, dtype))), g.scalar(0.5, dtype)));
    return of(passed(g.finish()), "Gelu").size();
  };
  for (const DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16})
    EXPECT_EQ(count(dtype, std::sqrt(2.0)), 1u) << name_of(dtype);
  EXPECT_EQ(count(DType::float64, static_cast<double>(std::sqrt(2.0f))), 0u);
  EXPECT_EQ(count(DType::float16, 1.4175), 0u);
  EXPECT_EQ(count(DType::bfloat16, 1.44), 0u);
}

TEST_F(LookAlikes, LayerNormalizations) {
  const Ints last{2}, two{1, 2};
  const Shape shape{1, 3, 4};
  const std::string op = "LayerNormalization";
  expect(normalised(shape, last, last, number(2), number(1e-5)), op, 1);
  expect(normalised(shape, two, two, number(2), numbers({1, 1, 1}, 1e-5f)), op, 1);
  expect(normalised(shape, last, last, number(2.0001), number(1e-5)), op, 0);
  expect(normalised(shape, last, last, number(2), number(-1e-5)), op, 0);
  // The squares are of differences from other means.
  expect(normalised(shape, two, last, number(2), number(1e-5)), op, 0);
  // Operands that are wider than what they are combined with.
  expect(normalised(shape, last, last, number(2), numbers({2, 1, 1}, 1e-5f)), op, 0);
  expect(normalised(shape, last, last, number(2), numbers({4}, 1e-5f)), op, 0);
  expect(normalised(shape, last, last, numbers({2, 1, 1}, 2), number(1e-5)), op, 0);
}

}  // namespace
}  // namespace tandem
