// Constant indices of lookups that name the samples of the file's batch, one after the other: what
// they become under another batch.
#pragma once

#include <optional>

#include "importer/node_context.h"

namespace tandem::importer {

/// For a Gather, GatherND or ScatterND whose data holds the batch in an axis that is looked up: the
/// indices for this import's samples, where slices of the file's indices along an axis are 0, 1,
/// ... samples further each. Nothing where the indices are something else. `old_data`: the data's
/// shape under the file's batch.
std::optional<HostTensor> indices_for_batch(const NodeContext& node, const BatchRecord& old,
                                            const Shape& old_data);

}  // namespace tandem::importer
