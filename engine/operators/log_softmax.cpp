// y = x - log(sum(exp(x))) along an axis; dx = dy - exp(y) * sum(dy).
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operators.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& view) {
  require_float(view, 0);
  checked_axis(view, view.input(0).rank());
  return {view.input(0)};
}

Gradients gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  return {c.g.add_node("LogSoftmaxGrad", {c.dy[0], c.y(0)}, c.node.attributes)};
}

std::vector<TensorType> infer_grad(const NodeView& view) {
  require_float(view, 0);
  checked_axis(view, view.input(0).rank());
  require_type(view, 1, view.input(0));
  return {view.input(0)};
}

Cost cost(const NodeView& view) { return {5 * element_number(view.input(0)), operand_bytes(view)}; }

}  // namespace

Operator log_softmax() {
  return {.name = "LogSoftmax",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer,
          .gradient = gradient,
          .cost = cost};
}

Operator log_softmax_grad() {
  return {.name = "LogSoftmaxGrad",
          .inputs = {{"dy"}, {"y"}},
          .outputs = {{"dx"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer_grad,
          .not_differentiable = "second derivatives of LogSoftmax are not offered",
          .cost = cost,
          .engine_only = true};
}

}  // namespace tandem::operators
