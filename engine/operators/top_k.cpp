// The k largest (smallest) elements along an axis, in order, and their places along it. Of equal
// ones the first comes first; NaN counts as the largest number.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_top_k(const NodeView& node) {
  require_number(node, 0);
  TensorType values = node.input(0);
  const std::size_t axis = checked_axis(node, values.rank());
  const std::int64_t k = node.attributes().integer("k");
  if (k < 0 || k > values.shape[axis]) {
    node.fail("attribute 'k'", "0 to " + std::to_string(values.shape[axis]), std::to_string(k));
  }
  values.shape[axis] = k;
  return {values, {DType::int64, values.shape}};
}

// dx is dy at the places that were taken, and 0 elsewhere.
Gradients top_k_gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  GraphBuilder& g = c.g;
  const Shape shape = g.shape(c.x(0));
  const auto axis = static_cast<std::size_t>(c.node.attributes.integer("axis"));
  Ints positions = row_major(shape).strides;
  const Ints stride{positions[axis]};
  positions[axis] = 0;
  Shape tuples = g.shape(c.y(1));
  const std::int64_t taken = element_count(tuples);
  tuples.push_back(1);
  if (taken == 0) return {g.filled(0, g.type(c.x(0)))};
  const ValueId flat = g.add_node(
      "FlatIndices", {g.reshape(c.y(1), tuples)},
      {{"extents", Ints{shape[axis]}}, {"strides", stride}, {"position_strides", positions}});
  const ValueId dx =
      g.add_node("GatherGrad", {g.reshape(c.dy[0], {taken}), g.reshape(flat, {taken})},
                 {{"axis", std::int64_t{0}}, {"shape", Ints{element_count(shape)}}});
  return {g.reshape(dx, shape)};
}

}  // namespace

Operator top_k() {
  return {.name = "TopK",
          .inputs = {{"x"}},
          .outputs = {{"values"}, {"indices"}},
          .attributes = {{"axis", std::int64_t{0}, true},
                         {"k", std::int64_t{0}, true},
                         {"largest", std::int64_t{1}}},
          .infer = infer_top_k,
          .gradient = top_k_gradient,
          .drops_elements = true};
}

}  // namespace tandem::operators
