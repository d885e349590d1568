// From a forward graph and the model's own algorithm to a training graph.
#pragma once

#include <string>

#include "engine/train/algorithm/algorithm.h"
#include "engine/train/graph/training_graph.h"

namespace tandem {

/// The loss that a run logs: what the algorithm derives first, or the output that loss.output
/// names. Throws Error{usage} where it is not one number.
Loss algorithm_loss(GraphBuilder& g, const TrainingAlgorithm& algorithm, const LossConfig& config);

/// The step of `request.algorithm`. Throws Error{usage}, all problems at once: keys that say how to
/// train, too; operators without a gradient; cached tables.
TrainingGraph build_algorithm_graph(const OperatorSet& operators, const Graph& forward,
                                    const TrainingRequest& request);

/// A forward graph that ends in the model's own outputs, with the inputs that these need.
Graph without_algorithm(Graph forward, const OperatorSet& operators,
                        const TrainingAlgorithm& algorithm);

}  // namespace tandem
