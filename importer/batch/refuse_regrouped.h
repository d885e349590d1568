// Refuses operators that treat samples and channels differently, where a batch of one in the file
// does not show whether an axis holds samples or channels.
#pragma once

#include <vector>

#include "importer/batch/follow_traits.h"
#include "importer/node_context.h"

namespace tandem::importer {

/// To be called once a node is lowered, where a batch of one is bound anew: throws Error where the
/// node may have had each sample's channels as channels of one sample, x.view(1, B * C, ...), or
/// its steps as steps of one sequence.
void refuse_regrouped(NodeContext& node, const std::vector<Seen>& operands, const Seen& y);

}  // namespace tandem::importer
