// The position that each node of a placed graph prefers in its order.
#pragma once

#include <vector>

#include "engine/lower/placed_graph.h"

namespace tandem {

/// Per node: its own position; for a node of the update, right after the last of its operands,
/// while the gradient is still in cache. An exchange between ranks also starts right after its
/// operands, but what computes with its results comes after everything that does not, which gives
/// the exchange that much time. A weight that is not gathered in place is written after the next
/// gathering.
std::vector<double> early_keys(const Graph& graph);

}  // namespace tandem
