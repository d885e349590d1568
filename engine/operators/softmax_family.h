// What Softmax and LogSoftmax share: types, cost, and a gradient from (dy, y) along one axis.
#pragma once

#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {

inline std::vector<TensorType> infer_softmax(const NodeView& view) {
  require_float(view, 0);
  checked_axis(view, view.input(0).rank());
  return {view.input(0)};
}

inline std::vector<TensorType> infer_softmax_grad(const NodeView& view) {
  infer_softmax(view);
  require_type(view, 1, view.input(0));
  return {view.input(0)};
}

inline Cost softmax_cost(const NodeView& view) {
  return {5 * element_number(view.input(0)), operand_bytes(view)};
}

/// Its gradient is the operator NAMEGrad(dy, y).
inline Gradients softmax_gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  return {c.g.add_node(c.node.op->name + "Grad", {c.dy[0], c.y(0)}, c.node.attributes)};
}

inline Operator softmax_operator(std::string name) {
  return {.name = std::move(name),
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer_softmax,
          .gradient = softmax_gradient,
          .cost = softmax_cost,
          .precision = Precision::float32};
}

inline Operator softmax_grad_operator(const std::string& name) {
  return {.name = name + "Grad",
          .inputs = {{"dy"}, {"y"}},
          .outputs = {{"dx"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer_softmax_grad,
          .not_differentiable = "second derivatives of " + name + " are not offered",
          .cost = softmax_cost,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
