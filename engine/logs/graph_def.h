// A model's graph as TensorBoard draws it.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace tandem {

/// A message GraphDef of tensorflow/core/framework/graph.proto: a node for each operator, and for
/// each input, constant and state that an operator reads. Names are paths whose parts are scopes,
/// so that modules can be opened and closed; shapes are shown at the edges.
std::string graph_def(const Graph& graph);

}  // namespace tandem
