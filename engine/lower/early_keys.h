// Where the nodes of a placed graph would like to be in its order.
#pragma once

#include <vector>

#include "engine/lower/placed_graph.h"

namespace tandem {

/// Per node: its own place; a node of the update right after the last of its operands, while the
/// gradient is still in cache. What is exchanged between ranks starts at once like that, but what
/// computes with its results comes behind everything that does not, so that the exchange has that
/// long. A weight that is gathered beside where it lies is written behind the next gathering.
std::vector<double> early_keys(const Graph& graph);

}  // namespace tandem
