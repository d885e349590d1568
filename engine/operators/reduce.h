// What the reductions share: their shapes, and the way back to the shape before.
#pragma once

#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem {

/// x's shape with the reduced axes as 1.
inline Shape kept_shape(Shape shape, const Ints& axes) {
  for (std::int64_t axis : axes) shape[axis] = 1;
  return shape;
}

/// Number of elements that go into one result.
inline std::int64_t reduced_count(const Shape& shape, const Ints& axes) {
  std::int64_t count = 1;
  for (std::int64_t axis : axes) count *= shape[axis];
  return count;
}

inline std::vector<TensorType> infer_reduction(const NodeView& node) {
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
inline Cost reduction_cost(const NodeView& node) {
  return {static_cast<double>(node.input(0).elements()),
          static_cast<double>(node.input(0).bytes() + node.output(0).bytes())};
}

inline Operator reduction_operator(std::string name, Reducer reducer,
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

}  // namespace tandem
