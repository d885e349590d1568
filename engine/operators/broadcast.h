// numpy's broadcasting of operands.
#pragma once

#include "engine/operators/operator.h"

namespace tandem {

/// The common shape of inputs i and j; fails where they do not fit.
inline Shape broadcast_inputs(const NodeView& node, std::size_t i, std::size_t j) {
  const auto shape = broadcast_shape(node.input(i).shape, node.input(j).shape);
  if (!shape) {
    node.fail("shapes do not broadcast", "equal extents or 1 from the right",
              to_string(node.input(i).shape) + " and " + to_string(node.input(j).shape));
  }
  return *shape;
}

/// Strides of an operand of `shape` seen as one of `to`: 0 along broadcast axes.
inline std::vector<std::int64_t> broadcast_strides(const std::vector<std::int64_t>& strides,
                                                   const Shape& shape, const Shape& to) {
  std::vector<std::int64_t> result(to.size(), 0);
  const std::size_t lead = to.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == to[lead + i]) result[lead + i] = strides[i];
  }
  return result;
}

}  // namespace tandem
