// Constant targets that hold a batch which the file fixed: what they become under another batch.
#pragma once

#include <optional>

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// ONNX's Reshape: 0 copies the extent of x (unless allow_zero), -1 is what is left. Nothing where
/// the numbers of elements cannot agree.
std::optional<Shape> resolve_reshape(const Shape& x, const Ints& target, bool allow_zero);

/// The target shape of a Reshape of input 0 under the batch of this import. Throws where the file
/// fixed another batch and the new shape is not provable.
Shape reshape_target(NodeContext& node, const Ints& target, bool allow_zero);

/// The same for Expand.
Ints expand_target(NodeContext& node, const Ints& target);

/// The same for extents that Resize gives to all axes of input 0.
Ints resize_target(NodeContext& node, const Ints& target);

}  // namespace tandem::importer::operators
