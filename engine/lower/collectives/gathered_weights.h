// Weights that come together of the parts that ranks have of them: AllGather, views of its result,
// and the Assign that writes the state.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

struct GatheredWeight {
  NodeId gather;
  std::vector<NodeId> behind;  // what stands between that and the state, the state's Assign last
};

std::vector<GatheredWeight> gathered_weights(const Graph& graph);

}  // namespace tandem
