// Parameters that products read as their right operand, as they are or transposed.
#pragma once

#include <string>

#include "engine/operators/operator.h"

namespace tandem {

/// The matrix that a product reads as its right operand: the value itself, or what a Transpose of
/// it swaps the axes of. No value where the operand is no matrix.
struct ProductWeight {
  ValueId matrix;
  bool transposed = false;
};
ProductWeight product_weight(const Graph& graph, const Node& product);

/// Whether a product reads the matrix in this way.
bool products_read(const Graph& graph, ValueId matrix);

/// Why a matrix cannot be sharded among ranks for the products that read it: something else reads
/// it, or one of them multiplies a vector with it. "" where nothing is in the way.
std::string product_weight_obstacle(const Graph& graph, ValueId matrix);

}  // namespace tandem
