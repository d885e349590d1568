// y = the largest element of x over axes; -infinity (the type's lowest) where there is none.
#include "engine/operators/operator.h"
#include "engine/operators/reduce.h"

namespace tandem::operators {
namespace {

// dx = dy / m at the m elements that equal y
Gradients gradient(GradientContext& c) {
  const TensorType x = c.g.type(c.x(0));
  const Ints& axes = c.node.attributes.integers("axes");
  const Shape kept = kept_shape(x.shape, axes);
  const ValueId y = c.g.reshape(c.y(0), kept);
  const ValueId largest = c.g.cast(c.g.add_node("Equal", {c.x(0), y}), x.dtype);
  const ValueId count = c.g.reduce_sum(largest, axes, true);
  return {c.g.mul(largest, c.g.div(c.g.reshape(c.dy[0], kept), count))};
}

}  // namespace

Operator reduce_max() {
  Operator op = reduction_operator("ReduceMax", Reducer::maximum, infer_reduction, gradient);
  op.gradient_compares = [](const Attributes&) { return true; };
  return op;
}

}  // namespace tandem::operators
