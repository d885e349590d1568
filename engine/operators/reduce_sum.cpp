// y = the sum of x over axes.
#include "engine/operators/operator.h"
#include "engine/operators/reduce.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) {
  require_number(node, 0);
  return infer_reduction(node);
}

// dx = dy, repeated
Gradients gradient(GradientContext& c) {
  const Shape shape = c.g.shape(c.x(0));
  const Shape kept = kept_shape(shape, c.node.attributes.integers("axes"));
  return {c.g.expand(c.g.reshape(c.dy[0], kept), shape)};
}

}  // namespace

Operator reduce_sum() {
  Operator op = reduction_operator("ReduceSum", Reducer::sum, infer, gradient);
  op.precision = Precision::float32;  // long sums
  return op;
}

}  // namespace tandem::operators
