// The forward graph of a step, or of an evaluation, with the losses of the configuration.
#pragma once

#include "engine/graph/builder.h"
#include "engine/train/graph/add_losses.h"
#include "engine/train/graph/rank_sums.h"
#include "engine/train/graph/training_graph.h"

namespace tandem {

struct GraphWithLoss {
  Graph graph;
  Loss loss;
};

/// `forward` with its losses, which are no outputs yet, as several ranks compute them. The
/// outputs of the model stay only with `keeps_outputs`.
GraphWithLoss with_loss(const OperatorSet& operators, Graph forward, const TrainingRequest& request,
                        bool keeps_outputs);

/// Makes losses outputs: they are found by these names. An output of the model with such a name is
/// dropped.
void name_loss(GraphBuilder& g, const Loss& loss, RankSums& ranks);

}  // namespace tandem
