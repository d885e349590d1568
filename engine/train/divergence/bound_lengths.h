// Compares lengths of samples with the lengths that model.bind gives the model's free dimensions.
#pragma once

#include "engine/config/run_config.h"
#include "engine/graph/graph.h"
#include "engine/train/graph/training_graph.h"

namespace tandem {

/// Throws Error{usage} where a field differs from its input in a dimension that model.bind has
/// bound: both keys have to say the same. Other mismatches are reported elsewhere.
void check_bound_lengths(const RunConfig& config, const Graph& forward, const FieldTypes& fields);

}  // namespace tandem
