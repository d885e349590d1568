// Which weights of a model `init` gives adapters.
#pragma once

#include <string>

#include "api/init/draft.h"
#include "api/init/facts.h"

namespace tandem::api {

/// Whether products read weights of few bits, next to which only adapters train.
bool has_packed_weights(const ModelFacts& model);

/// A selector of the weights that make queries and values, by the names that models give them; ""
/// where none matches.
std::string adapted_selector(const ModelFacts& model);

/// The key parameters.lora, for a model with packed weights.
void write_adapters(const ModelFacts& model, Draft& draft);

}  // namespace tandem::api
