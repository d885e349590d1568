// y = condition ? x : y, with numpy's broadcasting of all three.
#include "engine/operators/elementwise.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_where(const NodeView& node) {
  require_dtype(node, 0, DType::boolean);
  require_same_dtype(node, 1, 2);
  const auto shape = broadcast_shape(node.input(0).shape, broadcast_inputs(node, 1, 2));
  if (!shape) {
    node.fail("the condition does not broadcast", to_string(broadcast_inputs(node, 1, 2)),
              to_string(node.input(0).shape));
  }
  return {{node.input(1).dtype, *shape}};
}

Gradients where_gradient(GradientContext& c) {
  const ValueId zero = c.g.scalar(0, c.g.dtype(c.y(0)));
  const auto part = [&](std::size_t input, ValueId chosen, ValueId other) {
    const Shape shape = c.g.shape(c.x(input));
    return c.g.sum_to(c.g.add_node("Where", {c.x(0), chosen, other}), shape);
  };
  Gradients dx(3);
  if (c.wanted[1]) dx[1] = part(1, c.dy[0], zero);
  if (c.wanted[2]) dx[2] = part(2, zero, c.dy[0]);
  return dx;
}

}  // namespace

Operator where() {
  return {.name = "Where",
          .inputs = {{"condition"}, {"x"}, {"y"}},
          .outputs = {{"z"}},
          .infer = infer_where,
          .gradient = where_gradient,
          .scalar = ScalarFunction::where,
          .drops_elements = true};
}

}  // namespace tandem::operators
