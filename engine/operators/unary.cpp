// Operators of one operand, element by element; each with its derivative.
#include <limits>
#include <numbers>

#include "engine/operators/elementwise.h"
#include "engine/operators/operators.h"

namespace tandem::operators {
namespace {

ValueId number(GradientContext& c, double value) { return c.g.scalar(value, c.g.dtype(c.x(0))); }

// dx = op(dy, y) or op(dy, x) with the node's own attributes.
template <bool of_output>
Gradients by_operator(GradientContext& c, std::string_view op) {
  return {c.g.add_node(op, {c.dy[0], of_output ? c.y(0) : c.x(0)}, c.node.attributes)};
}

// dx = -dy
Gradients neg_gradient(GradientContext& c) { return {c.g.neg(c.dy[0])}; }

// dx = dy sign(x)
Gradients abs_gradient(GradientContext& c) {
  return {c.g.mul(c.dy[0], c.g.add_node("Sign", {c.x(0)}))};
}

// The derivative is 0 wherever it exists.
Gradients sign_gradient(GradientContext&) { return {ValueId{}}; }

// dx = dy y
Gradients exp_gradient(GradientContext& c) { return {c.g.mul(c.dy[0], c.y(0))}; }

// dx = dy / x
Gradients log_gradient(GradientContext& c) { return {c.g.div(c.dy[0], c.x(0))}; }

// dx = dy / (2 y)
Gradients sqrt_gradient(GradientContext& c) {
  return {c.g.div(c.g.mul(c.dy[0], number(c, 0.5)), c.y(0))};
}

// dx = -dy y^2
Gradients reciprocal_gradient(GradientContext& c) {
  return {c.g.neg(c.g.mul(c.g.mul(c.dy[0], c.y(0)), c.y(0)))};
}

// dx = dy 2 / sqrt(pi) exp(-x^2)
Gradients erf_gradient(GradientContext& c) {
  const ValueId bell = c.g.add_node("Exp", {c.g.neg(c.g.mul(c.x(0), c.x(0)))});
  return {c.g.mul(c.dy[0], c.g.mul(bell, number(c, 2 * std::numbers::inv_sqrtpi)))};
}

// dx = dy sigmoid(x)
Gradients softplus_gradient(GradientContext& c) {
  return {c.g.mul(c.dy[0], c.g.add_node("Sigmoid", {c.x(0)}))};
}

Gradients tanh_gradient(GradientContext& c) { return by_operator<true>(c, "TanhGrad"); }
Gradients sigmoid_gradient(GradientContext& c) { return by_operator<true>(c, "SigmoidGrad"); }
Gradients relu_gradient(GradientContext& c) { return by_operator<true>(c, "ReluGrad"); }
Gradients leaky_relu_gradient(GradientContext& c) { return by_operator<false>(c, "LeakyReluGrad"); }
Gradients clip_gradient(GradientContext& c) { return by_operator<false>(c, "ClipGrad"); }
Gradients gelu_gradient(GradientContext& c) { return by_operator<false>(c, "GeluGrad"); }

std::vector<TensorType> infer_gelu(const NodeView& node) {
  const std::string& approximate = node.attributes().text("approximate");
  if (approximate != "none" && approximate != "tanh") {
    node.fail("attribute 'approximate'", "\"none\" or \"tanh\"", "\"" + approximate + "\"");
  }
  return infer_float(node);
}

std::vector<TensorType> infer_not(const NodeView& node) {
  require_dtype(node, 0, DType::boolean);
  return {node.input(0)};
}

// Its slope or range does not fit 16 bits.
Operator exact(Operator op) {
  op.precision = Precision::float32;
  return op;
}

}  // namespace

Operator neg() { return unary_operator("Neg", ScalarFunction::neg, infer_number, neg_gradient); }
Operator abs() { return unary_operator("Abs", ScalarFunction::abs, infer_number, abs_gradient); }
Operator sign() {
  return unary_operator("Sign", ScalarFunction::sign, infer_number, sign_gradient);
}
Operator exp() {
  return exact(unary_operator("Exp", ScalarFunction::exp, infer_float, exp_gradient));
}
Operator log() {
  return exact(unary_operator("Log", ScalarFunction::log, infer_float, log_gradient));
}
Operator sqrt() {
  return exact(unary_operator("Sqrt", ScalarFunction::sqrt, infer_float, sqrt_gradient));
}
Operator reciprocal() {
  return exact(
      unary_operator("Reciprocal", ScalarFunction::reciprocal, infer_float, reciprocal_gradient));
}
Operator erf() {
  return exact(unary_operator("Erf", ScalarFunction::erf, infer_float, erf_gradient));
}
Operator tanh() { return unary_operator("Tanh", ScalarFunction::tanh, infer_float, tanh_gradient); }
Operator sigmoid() {
  return unary_operator("Sigmoid", ScalarFunction::sigmoid, infer_float, sigmoid_gradient);
}

// log(1 + exp(x))
Operator softplus() {
  return exact(
      unary_operator("Softplus", ScalarFunction::softplus, infer_float, softplus_gradient));
}

// max(x, 0); the derivative at 0 is 0
Operator relu() {
  return unary_operator("Relu", ScalarFunction::relu, infer_number, relu_gradient);
}

// x > 0 ? x : alpha x
Operator leaky_relu() {
  Operator op =
      unary_operator("LeakyRelu", ScalarFunction::leaky_relu, infer_float, leaky_relu_gradient);
  op.attributes = {{"alpha", 0.01}};
  return op;
}

// min(max(x, min), max); the derivative on the border is 1
Operator clip() {
  Operator op = unary_operator("Clip", ScalarFunction::clip, infer_number, clip_gradient);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  op.attributes = {{"min", -infinity}, {"max", infinity}};
  return op;
}

// x Phi(x), or its approximation by tanh
Operator gelu() {
  Operator op = unary_operator("Gelu", ScalarFunction::gelu, infer_gelu, gelu_gradient);
  op.attributes = {{"approximate", std::string("none")}};
  return op;
}

Operator logical_not() {
  Operator op = unary_operator("Not", ScalarFunction::logical_not, infer_not, nullptr);
  op.not_differentiable = "bool";
  return op;
}

}  // namespace tandem::operators
