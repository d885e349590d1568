// Warns of sequences that are longer than the positions that the model has, by its config.json.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace tandem::api {

/// The warning; "" where they fit, and where no config.json lies in the model's folder. A model
/// that computes its positions accepts any length, but was not trained on further positions.
std::string long_samples(const std::string& model_file, const Graph& imported);

}  // namespace tandem::api
