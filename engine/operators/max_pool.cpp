// y = the largest element of each window; indices = its place in x, flat. Padding never wins.
#include "engine/graph/builder.h"
#include "engine/operators/operator.h"
#include "engine/operators/pooling.h"

namespace tandem::operators {
namespace {

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> specs = pooling_attributes();
  specs.push_back({"storage_order", std::int64_t{0}});
  return specs;
}

std::vector<TensorType> infer(const NodeView& view) {
  require_flag(view, "storage_order");
  const Shape y = pooled_shape(view, view.input(0).shape);
  return {{view.input(0).dtype, y}, {DType::int64, y}};
}

Gradients gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  return {c.g.add_node("MaxPoolGrad", {c.x(0), c.y(0), c.dy[0]}, c.node.attributes)};
}

Cost cost(const NodeView& view) {
  // The indices are usually unread and then not written.
  const double bytes = static_cast<double>(view.input(0).bytes() + view.output(0).bytes());
  return {pooling_flops(view, view.output(0).shape), bytes};
}

std::vector<TensorType> infer_grad(const NodeView& view) {
  require_float(view, 0);
  require_flag(view, "storage_order");
  const TensorType& x = view.input(0);
  const TensorType y{x.dtype, pooled_shape(view, x.shape)};
  require_type(view, 1, y);
  require_type(view, 2, y);
  return {x};
}

Cost cost_grad(const NodeView& view) {
  return {pooling_flops(view, view.input(1).shape), operand_bytes(view)};
}

}  // namespace

Operator max_pool() {
  return {.name = "MaxPool",
          .role = Role::pooling,
          .inputs = {{"x"}},
          .outputs = {{"y"}, {"indices"}},
          .attributes = attributes(),
          .infer = infer,
          .gradient = gradient,
          .cost = cost,
          .gradient_compares = [](const Attributes&) { return true; }};
}

// dx: the first element of each window that equals y gets dy.
Operator max_pool_grad() {
  return {.name = "MaxPoolGrad",
          .inputs = {{"x"}, {"y"}, {"dy"}},
          .outputs = {{"dx"}},
          .attributes = attributes(),
          .infer = infer_grad,
          .not_differentiable = "second derivatives of MaxPool are not offered",
          .cost = cost_grad,
          .engine_only = true};
}

}  // namespace tandem::operators
