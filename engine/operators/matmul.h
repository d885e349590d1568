// The extents of a matrix product, shared by MatMul and the operators that lowering makes of it.
#pragma once

#include "engine/operators/operator.h"

namespace tandem {

struct ProductExtents {
  Shape batch;  // broadcast leading axes
  std::int64_t m = 1, n = 1, k = 1;
};

/// numpy's matmul of inputs i and j, 1-D operands included; fails where they do not fit.
ProductExtents product_extents(const NodeView& node, std::size_t i, std::size_t j);

/// The shape of the result: the batch, m unless input i is 1-D, n unless input j is 1-D.
Shape product_shape(const NodeView& node, std::size_t i, std::size_t j);

/// 2 m n k flops a matrix, and the bytes of all operands.
Cost product_cost(const NodeView& node, std::size_t i, std::size_t j);

}  // namespace tandem
