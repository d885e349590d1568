// Checks what a configuration says about the model, before the types of labels are known.
#pragma once

#include <vector>

#include "api/model/engine.h"
#include "engine/config/run_config.h"
#include "engine/graph/graph.h"

namespace tandem::api {

/// Throws Error{usage} for names of values in the loss, for selectors, and where nothing trains or
/// a gradient is missing. `forward`: the model in training form; `thawed`: as in TrainingRequest.
/// Without any loss nothing is checked: such a configuration only predicts.
void check_settings(const Engine& engine, const RunConfig& config, const Graph& forward,
                    const std::vector<bool>& thawed);

}  // namespace tandem::api
