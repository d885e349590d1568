// y = the mean of x over axes.
#include "engine/operators/operator.h"
#include "engine/operators/reduce.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) {
  require_number(node, 0);
  return infer_reduction(node);
}

// dx = dy / n, repeated
Gradients gradient(GradientContext& c) {
  const TensorType x = c.g.type(c.x(0));
  const Ints& axes = c.node.attributes.integers("axes");
  const std::int64_t count = reduced_count(x.shape, axes);
  if (count == 0) return {c.g.expand(c.g.scalar(0, x.dtype), x.shape)};
  ValueId share = c.g.reshape(c.dy[0], kept_shape(x.shape, axes));
  if (count > 1) share = c.g.mul(share, c.g.scalar(1.0 / static_cast<double>(count), x.dtype));
  return {c.g.expand(share, x.shape)};
}

}  // namespace

Operator reduce_mean() {
  Operator op = reduction_operator("ReduceMean", Reducer::mean, infer, gradient);
  op.precision = Precision::float32;  // long sums
  return op;
}

}  // namespace tandem::operators
