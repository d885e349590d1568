// The inputs one after the other along an axis.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_concat(const NodeView& node) {
  if (node.input_count() == 0) node.fail("no inputs", "at least 1", "0");
  TensorType result = node.input(0);
  const std::size_t axis = checked_axis(node, result.rank());
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    require_same_dtype(node, 0, i);
    Shape expected = node.input(0).shape;
    if (node.input(i).rank() == expected.size()) expected[axis] = node.input(i).shape[axis];
    if (node.input(i).shape != expected) {
      node.fail("shape of input " + std::to_string(i) + " but for the axis " + std::to_string(axis),
                to_string(expected), to_string(node.input(i).shape));
    }
    result.shape[axis] += node.input(i).shape[axis];
  }
  return {result};
}

// Each dx is its slice of dy.
Gradients concat_gradient(GradientContext& c) {
  const auto axis = static_cast<std::size_t>(c.node.attributes.integer("axis"));
  Gradients dx(c.node.inputs.size());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const Shape shape = c.g.shape(c.x(i));
    if (c.wanted[i]) {
      Ints starts(shape.size(), 0);
      starts[axis] = start;
      dx[i] =
          c.g.add_node("Slice", {c.dy[0]},
                       {{"starts", starts}, {"sizes", shape}, {"steps", Ints(shape.size(), 1)}});
    }
    start += shape[axis];
  }
  return dx;
}

}  // namespace

Operator concat() {
  return {.name = "Concat",
          .role = Role::concatenation,
          .inputs = {{"x", false, true}},
          .outputs = {{"y"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer_concat,
          .gradient = concat_gradient,
          .takes_float8 = true};
}

}  // namespace tandem::operators
