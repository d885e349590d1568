// Sequences that are longer than config.json says the model has positions for.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace tandem::api {

/// What is to be said of them; "" where they fit, and where no config.json lies in the model's
/// folder. A model that computes its positions takes any length and knows nothing of further ones.
std::string long_samples(const std::string& model_file, const Graph& imported);

}  // namespace tandem::api
