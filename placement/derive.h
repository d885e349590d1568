// From the devices of forward operators and parameters to those of a whole training graph: what is
// derived follows from its origin and its phase.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/lower/placement.h"

namespace tandem {

/// What is decided of the forward graph; null where nothing is.
struct ForwardPlacement {
  std::vector<std::string> devices;  // names; index 0 is "cpu"
  /// Device -1: where what it reads is made.
  std::function<const PlacedNode*(const std::string& path)> node;
  std::function<const PlacedState*(const std::string& parameter)> parameter;
};

/// A forward node runs where its path says, else where what it reads is made. A backward node runs
/// where its origin does. A parameter's update runs at its `state` with the moments; a gradient is
/// summed where it is computed. Other nodes of the update (norms, scales) run where all that they
/// read is made, else on the cpu. A table's cache groups its ids where it is. Statistics live with
/// the node that writes them.
Placement derive_placement(const Graph& graph, const ForwardPlacement& forward);

}  // namespace tandem
