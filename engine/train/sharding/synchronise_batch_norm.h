// BatchNormalization over the samples of all ranks.
#pragma once

#include "engine/graph/graph.h"

namespace tandem {

/// Each BatchNormalizationTraining becomes statistics of a rank's samples, which an AllGather
/// brings to all ranks, and what is computed from them, under its own path, before the gradient is
/// taken: the gradient's sums then go over all ranks, too. Running statistics are the same on all
/// ranks.
Graph synchronise_batch_norm(const OperatorSet& operators, const Graph& forward, int ranks);

}  // namespace tandem
