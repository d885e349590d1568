// y = the product of x over axes; 1 where there is nothing.
#include "engine/operators/operator.h"
#include "engine/operators/reduce.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) {
  require_number(node, 0);
  return infer_reduction(node);
}

// With p the product of all elements but zeros, z the number of zeros: the product of the others
// is p / x where z is 0, p for the only zero, and else 0.
Gradients gradient(GradientContext& c) {
  GraphBuilder& g = c.g;
  const TensorType x = g.type(c.x(0));
  const Ints& axes = c.node.attributes.integers("axes");
  const ValueId zero = g.scalar(0, x.dtype), one = g.scalar(1, x.dtype);
  const ValueId is_zero = g.add_node("Equal", {c.x(0), zero});
  const ValueId factor = g.add_node("Where", {is_zero, one, c.x(0)});
  const ValueId mine = g.cast(is_zero, x.dtype);
  const ValueId product =
      g.add_node("ReduceProd", {factor}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  const ValueId zeros = g.reduce_sum(mine, axes, true);
  const ValueId others =
      g.add_node("Where", {g.add_node("Equal", {zeros, mine}), g.div(product, factor), zero});
  return {g.mul(g.reshape(c.dy[0], kept_shape(x.shape, axes)), others)};
}

}  // namespace

Operator reduce_prod() {
  Operator op = reduction_operator("ReduceProd", Reducer::product, infer, gradient);
  op.precision = Precision::float32;  // products leave the range of 16 bits
  return op;
}

}  // namespace tandem::operators
