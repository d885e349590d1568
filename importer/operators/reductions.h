// What other families need of the reductions.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// x in the opposite order and the same type: -x, for integers all bits flipped, which is -1 - x
/// or, without sign, the largest number - x.
Term reversed_order(NodeContext& node, const Term& x);

/// x itself where it is of floating point, else in float64.
Term as_float(NodeContext& node, const Term& x);

/// The square root of a sum of squares, with a slope of 0 where the sum is 0, as PyTorch's norms
/// have it.
Term root_of_squares(NodeContext& node, const Term& sum);

}  // namespace tandem::importer::operators
