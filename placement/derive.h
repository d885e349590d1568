// Derives the placement of a whole training graph from what is decided about forward operators and
// parameters: a derived node follows its origin and its phase.
#pragma once

#include <map>
#include <string>

#include "engine/graph/graph.h"
#include "engine/lower/placement.h"
#include "placement/resolve.h"

namespace tandem {

/// What is decided about the forward graph; nothing about parts that it lacks.
struct ForwardPlacement {
  std::map<std::string, PlacedNode> nodes;        // by path; device -1: where its input is made
  std::map<std::string, PlacedState> parameters;  // by name
};

/// An added part ("loss.ce") that no rule placed is left open, so that it follows what it reads.
ForwardPlacement forward_placement(const ResolvedPolicy& resolved);

/// A forward node runs where its path says, else where what it reads is made. A backward node runs
/// where its origin does. A parameter's update runs at its `state` with the moments; a gradient is
/// summed where it is computed. Other nodes of the update (norms, scales) run where all that they
/// read is made, else on the cpu. A table's cache groups its ids where it is. Statistics live with
/// the node that writes them. Devices keep the indices of `resolved`.
Placement derive_placement(const Graph& graph, const ResolvedPolicy& resolved);

}  // namespace tandem
