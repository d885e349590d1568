// One-pass gradients of activations: (dy, y) or (dy, x) → dx.
#include <limits>

#include "engine/operators/elementwise.h"
#include "engine/operators/operators.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) {
  require_float(node, 0);
  require_same_dtype(node, 0, 1);
  require_shape(node, 1, node.input(0).shape);
  return {node.input(0)};
}

Operator gradient_operator(std::string name, ScalarFunction scalar, std::string second) {
  Operator op;
  op.name = std::move(name);
  op.inputs = {{"dy"}, {std::move(second)}};
  op.outputs = {{"dx"}};
  op.infer = infer;
  op.not_differentiable = no_second_gradient;
  op.scalar = scalar;
  op.engine_only = true;
  return op;
}

}  // namespace

// y <= 0 ? 0 : dy
Operator relu_grad() { return gradient_operator("ReluGrad", ScalarFunction::relu_grad, "y"); }

// x > 0 ? dy : alpha dy
Operator leaky_relu_grad() {
  Operator op = gradient_operator("LeakyReluGrad", ScalarFunction::leaky_relu_grad, "x");
  op.attributes = {{"alpha", 0.01}};
  return op;
}

// min <= x <= max ? dy : 0
Operator clip_grad() {
  Operator op = gradient_operator("ClipGrad", ScalarFunction::clip_grad, "x");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  op.attributes = {{"min", -infinity}, {"max", infinity}};
  return op;
}

// dy (Phi(x) + x phi(x)), or the derivative of the approximation by tanh
Operator gelu_grad() {
  Operator op = gradient_operator("GeluGrad", ScalarFunction::gelu_grad, "x");
  op.attributes = {{"approximate", std::string("none")}};
  return op;
}

// dy (1 - y^2)
Operator tanh_grad() { return gradient_operator("TanhGrad", ScalarFunction::tanh_grad, "y"); }

// dy y (1 - y)
Operator sigmoid_grad() {
  return gradient_operator("SigmoidGrad", ScalarFunction::sigmoid_grad, "y");
}

}  // namespace tandem::operators
