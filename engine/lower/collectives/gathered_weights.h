// Weights that are gathered from the parts that ranks keep: an AllGather, views of its result, and
// the Assign that writes the state.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

struct GatheredWeight {
  NodeId gather;
  std::vector<NodeId> behind;  // the nodes from there to the state, its Assign last
};

std::vector<GatheredWeight> gathered_weights(const Graph& graph);

}  // namespace tandem
