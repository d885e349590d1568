// Passes that keep numbers in range where the operators of a file leave it.
#pragma once

#include "engine/passes/pass.h"

namespace tandem {

Graph stable_exponentials(const Graph& graph, PassContext& context);
Graph stable_logarithms(const Graph& graph, PassContext& context);
Graph stable_entropies(const Graph& graph, PassContext& context);
Graph stable_roots(const Graph& graph, PassContext& context);

}  // namespace tandem
