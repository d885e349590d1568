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

/// Like reshape_target, for Expand.
Ints expand_target(NodeContext& node, const Ints& target);

/// Like reshape_target, for extents that Resize, MaxUnpool and CenterCropPad give to all axes of
/// input 0.
Ints resize_target(NodeContext& node, const Ints& target);

/// Like reshape_target, for the size of an AffineGrid, whose first extent is that of input 0.
Ints affine_grid_size(NodeContext& node, const Ints& size);

/// Throws where input 0 of a ScatterElements or ScatterND has this import's batch, and its indices
/// or updates still have the file's: it would write into only some of the samples.
void refuse_part_of_batch(NodeContext& node);

/// The end of a range along an axis of input 0, from `start` on: one that was the whole of the
/// file's batch is the whole of this one. Throws where a bound counts the file's samples, and where
/// x[0:1] and x[:batch] are one in a file with a batch of one.
std::int64_t end_in_batch(NodeContext& node, std::size_t axis, std::int64_t start,
                          std::int64_t end);

}  // namespace tandem::importer::operators
