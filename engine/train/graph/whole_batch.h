// The batch of a training step for losses that compare its samples with each other.
#pragma once

#include "engine/losses/loss_builder.h"
#include "engine/train/graph/training_graph.h"

namespace tandem {

/// Where the samples of this rank are in the batch, and how the graph gets those of other ranks
/// (AllGather, whose gradient brings back what other ranks add). It adds to `g`, which has to
/// outlive it.
WholeBatch whole_batch(GraphBuilder& g, const TrainingRequest& request);

}  // namespace tandem
