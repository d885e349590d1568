// Computed indices into the samples of a file with a batch of one: what they become under another
// batch.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer {

/// What indices say that look along the axis of the samples.
enum class SampleLookup {
  none,     // no such lookup, or one of constants (importer/batch/batch_indices.h)
  literal,  // they tell samples apart by themselves
  own,      // each of them looks into its own sample
  unclear,
};

/// How the indices of a Gather, GatherND, ScatterND, GatherElements or ScatterElements look along
/// the axis of the samples. In a file with a batch of one all indices lie in sample 0. They were
/// meant for their own sample (`own`) where nothing that they are computed from differs between
/// samples; a lookup along the bare axis of samples by values of the run chooses among all samples
/// (`literal`).
SampleLookup sample_lookup(NodeContext& node, const BatchRecord& old);

/// `own` indices with the number of their sample added.
Term indices_in_samples(NodeContext& node, const BatchRecord& old);

}  // namespace tandem::importer
