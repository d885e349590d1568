// Sums, means, maxima and products over axes.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

/// x's shape with the reduced axes as 1.
Shape kept_shape(Shape shape, const Ints& axes) {
  for (std::int64_t axis : axes) shape[axis] = 1;
  return shape;
}

/// Number of elements that go into one result.
std::int64_t reduced_count(const Shape& shape, const Ints& axes) {
  std::int64_t count = 1;
  for (std::int64_t axis : axes) count *= shape[axis];
  return count;
}

std::vector<TensorType> infer_reduction(const NodeView& node) {
  const TensorType& x = node.input(0);
  const Ints& axes = node.attributes().integers("axes");
  const bool keep = node.attributes().flag("keepdims");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool in_range = axes[i] >= 0 && axes[i] < static_cast<std::int64_t>(x.rank());
    if (!in_range || (i > 0 && axes[i] <= axes[i - 1])) {
      node.fail("attribute 'axes'", "ascending, within [0, " + std::to_string(x.rank()) + ")",
                to_string(axes));
    }
  }
  TensorType y{x.dtype, {}};
  std::size_t next = 0;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<std::int64_t>(i);
    if (reduced) ++next;
    if (!reduced) {
      y.shape.push_back(x.shape[i]);
    } else if (keep) {
      y.shape.push_back(1);
    }
  }
  return {y};
}

/// One flop an element of x.
Cost reduction_cost(const NodeView& node) {
  return {static_cast<double>(node.input(0).elements()),
          static_cast<double>(node.input(0).bytes() + node.output(0).bytes())};
}

Operator reduction_operator(std::string name, Reducer reducer,
                            std::vector<TensorType> (*infer)(const NodeView&),
                            Gradients (*gradient)(GradientContext&)) {
  return {.name = std::move(name),
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"axes", Ints(), true}, {"keepdims", std::int64_t{1}}},
          .infer = infer,
          .gradient = gradient,
          .cost = reduction_cost,
          .reducer = reducer};
}

std::vector<TensorType> infer_numbers(const NodeView& node) {
  require_number(node, 0);
  return infer_reduction(node);
}

// dx = dy, repeated
Gradients gradient_of_sum(GradientContext& c) {
  const Shape shape = c.g.shape(c.x(0));
  const Shape kept = kept_shape(shape, c.node.attributes.integers("axes"));
  return {c.g.expand(c.g.reshape(c.dy[0], kept), shape)};
}

// dx = dy / n, repeated
Gradients gradient_of_mean(GradientContext& c) {
  const TensorType x = c.g.type(c.x(0));
  const Ints& axes = c.node.attributes.integers("axes");
  const std::int64_t count = reduced_count(x.shape, axes);
  if (count == 0) return {c.g.expand(c.g.scalar(0, x.dtype), x.shape)};
  ValueId share = c.g.reshape(c.dy[0], kept_shape(x.shape, axes));
  if (count > 1) share = c.g.mul(share, c.g.scalar(1.0 / static_cast<double>(count), x.dtype));
  return {c.g.expand(share, x.shape)};
}

// dx = dy / m at the m elements that equal y
Gradients gradient_of_maximum(GradientContext& c) {
  const TensorType x = c.g.type(c.x(0));
  const Ints& axes = c.node.attributes.integers("axes");
  const Shape kept = kept_shape(x.shape, axes);
  const ValueId y = c.g.reshape(c.y(0), kept);
  const ValueId largest = c.g.cast(c.g.add_node("Equal", {c.x(0), y}), x.dtype);
  const ValueId count = c.g.reduce_sum(largest, axes, true);
  return {c.g.mul(largest, c.g.div(c.g.reshape(c.dy[0], kept), count))};
}

// With p the product of all elements but zeros, z the number of zeros: the product of the others
// is p / x where z is 0, p for the only zero, and else 0.
Gradients gradient_of_product(GradientContext& c) {
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

// y = the sum of x over axes.
Operator reduce_sum() {
  Operator op = reduction_operator("ReduceSum", Reducer::sum, infer_numbers, gradient_of_sum);
  op.precision = Precision::float32;  // long sums
  return op;
}

// y = the mean of x over axes.
Operator reduce_mean() {
  Operator op = reduction_operator("ReduceMean", Reducer::mean, infer_numbers, gradient_of_mean);
  op.precision = Precision::float32;  // long sums
  return op;
}

// y = the largest element of x over axes; -infinity (the type's lowest) where there is none.
Operator reduce_max() {
  Operator op =
      reduction_operator("ReduceMax", Reducer::maximum, infer_reduction, gradient_of_maximum);
  op.gradient_compares = [](const Attributes&) { return true; };
  return op;
}

// y = the product of x over axes; 1 where there is nothing.
Operator reduce_prod() {
  Operator op =
      reduction_operator("ReduceProd", Reducer::product, infer_numbers, gradient_of_product);
  op.precision = Precision::float32;  // products leave the range of 16 bits
  return op;
}

}  // namespace tandem::operators
