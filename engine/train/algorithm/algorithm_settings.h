// What a configuration may say where the model says itself how it is trained.
#pragma once

#include "engine/train/graph/training_graph.h"

namespace tandem {

/// Throws Error{usage} naming each key that would say how to train too.
void check_algorithm_settings(const TrainingRequest& request, const Graph& forward);

/// Throws Error{usage} where the configuration was read from a file without an optimizer, which the
/// model would have to bring.
void require_optimizer(const RunConfig& config);

}  // namespace tandem
