// Parameters whose shape their optimizer cannot take: refused together, with the groups to write.
#pragma once

#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/train/updates/parameter_choice.h"

namespace tandem {

/// What the kind of its optimizer needs and the parameter is not ("a matrix"); null: it fits.
const char* unmet_need(const Chosen& chosen);

/// A diagnostic for each key that gives a kind to parameters which it cannot update.
std::vector<Diagnostic> refuse_shapes(const Graph& graph, const std::vector<const Chosen*>& chosen);

}  // namespace tandem
