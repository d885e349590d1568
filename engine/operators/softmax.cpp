// y = exp(x) / sum(exp(x)) along an axis, dx = y * (dy - sum(y * dy)); LogSoftmax is y = x -
// log(sum(exp(x))), dx = dy - exp(y) * sum(dy).
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_softmax(const NodeView& view) {
  require_float(view, 0);
  checked_axis(view, view.input(0).rank());
  return {view.input(0)};
}

std::vector<TensorType> infer_softmax_grad(const NodeView& view) {
  infer_softmax(view);
  require_type(view, 1, view.input(0));
  return {view.input(0)};
}

/// Its gradient is the operator NAMEGrad(dy, y).
Gradients softmax_gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  return {c.g.add_node(c.node.op->name + "Grad", {c.dy[0], c.y(0)}, c.node.attributes)};
}

Operator softmax_operator(std::string name) {
  return {.name = std::move(name),
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer_softmax,
          .gradient = softmax_gradient,
          .cost = cost_by_elements<5, 0>,
          .precision = Precision::float32};
}

Operator softmax_grad_operator(const std::string& name) {
  return {.name = name + "Grad",
          .inputs = {{"dy"}, {"y"}},
          .outputs = {{"dx"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer_softmax_grad,
          .not_differentiable = "second derivatives of " + name + " are not offered",
          .cost = cost_by_elements<5, 0>,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace

Operator softmax() { return softmax_operator("Softmax"); }
Operator softmax_grad() { return softmax_grad_operator("Softmax"); }
Operator log_softmax() { return softmax_operator("LogSoftmax"); }
Operator log_softmax_grad() { return softmax_grad_operator("LogSoftmax"); }

}  // namespace tandem::operators
