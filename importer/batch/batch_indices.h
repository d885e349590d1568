// Constant indices of lookups that name the samples of the file's batch, one after the other: what
// they become under another batch.
#pragma once

#include <optional>

#include "importer/node_context.h"

namespace tandem::importer {

/// Of a Gather, GatherND or ScatterND whose data holds the batch where it is looked up: indices
/// whose slices along an axis are 0, 1, ... samples further each, for this import's samples.
/// Nothing where they are something else. `old_data`: the data's shape under the file's batch.
std::optional<HostTensor> indices_for_batch(const NodeContext& node, const BatchRecord& old,
                                            const Shape& old_data);

}  // namespace tandem::importer
