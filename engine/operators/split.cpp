// Pieces of x one after the other along an axis; lowering turns each into a Slice view.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_split(const NodeView& node) {
  const TensorType& x = node.input(0);
  const std::size_t axis = checked_axis(node, x.rank());
  const Ints& sizes = checked_shape(node, "sizes");
  std::int64_t sum = 0;
  std::vector<TensorType> types;
  for (std::int64_t size : sizes) {
    sum += size;
    types.push_back(x);
    types.back().shape[axis] = size;
  }
  if (sum != x.shape[axis] || sizes.empty()) {
    node.fail("sum of the pieces", std::to_string(x.shape[axis]), std::to_string(sum));
  }
  return types;
}

// dx = the pieces of dy joined; 0 for a piece that no gradient reaches
Gradients split_gradient(GradientContext& c) {
  std::vector<ValueId> pieces(c.dy.begin(), c.dy.end());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i]) continue;
    const TensorType type = c.g.type(c.y(i));
    pieces[i] = c.g.expand(c.g.scalar(0, type.dtype), type.shape);
  }
  if (pieces.size() == 1) return {pieces[0]};
  return {c.g.add_node("Concat", std::move(pieces), {{"axis", c.node.attributes.integer("axis")}})};
}

}  // namespace

Operator split() {
  return {.name = "Split",
          .inputs = {{"x"}},
          .outputs = {{"y", false, true}},
          .attributes = {{"axis", std::int64_t{0}, true}, {"sizes", Ints(), true}},
          .infer = infer_split,
          .gradient = split_gradient,
          .drops_elements = true,
          .takes_float8 = true};
}

}  // namespace tandem::operators
