// y = x * mask / (1 - ratio), where each element of the mask is 0 with probability `ratio`.
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

void require_ratio(const NodeView& view) {
  const double ratio = view.attributes().number("ratio");
  if (ratio >= 0.0 && ratio < 1.0) return;
  view.fail("ratio is out of range", "0 <= ratio < 1", std::to_string(ratio));
}

std::vector<TensorType> infer_dropout(const NodeView& view) {
  require_float(view, 0);
  require_ratio(view);
  require_samples(view);
  return {view.input(0), {DType::boolean, view.input(0).shape}};
}

Gradients dropout_gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  return {c.g.add_node("DropoutGrad", {c.dy[0], c.y(1)},
                       {{"ratio", c.node.attributes.number("ratio")}})};
}

std::vector<TensorType> infer_dropout_grad(const NodeView& view) {
  require_float(view, 0);
  require_type(view, 1, {DType::boolean, view.input(0).shape});
  require_ratio(view);
  return {view.input(0)};
}

// Linear in dy, with a constant mask.
Gradients gradient_grad(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}, ValueId{}};
  return {c.g.add_node("DropoutGrad", {c.dy[0], c.x(1)}, c.node.attributes), ValueId{}};
}

}  // namespace

Operator dropout() {
  return {.name = "Dropout",
          .inputs = {{"x"}},
          .outputs = {{"y"}, {"mask"}},
          .attributes = {{"ratio", 0.5}, {"samples", Ints{}}},
          .infer = infer_dropout,
          .gradient = dropout_gradient,
          // Ten rounds of Philox make four elements' random numbers.
          .cost = cost_by_elements<20, 0>,
          .random = true};
}

Operator dropout_grad() {
  return {.name = "DropoutGrad",
          .inputs = {{"dy"}, {"mask"}},
          .outputs = {{"dx"}},
          .attributes = {{"ratio", 0.5}},
          .infer = infer_dropout_grad,
          .gradient = gradient_grad,
          .engine_only = true};
}

}  // namespace tandem::operators
