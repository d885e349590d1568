// What backward reads of the values that forward makes: those that wait for it in memory.
#pragma once

#include <vector>

#include "engine/lower/placed_graph.h"

namespace tandem {

/// A node of backward that reads a value of forward, or a view of it that forward made.
struct SavedUse {
  NodeId reader;
  ValueId read;
};

/// On that device; copies to another one are no uses.
std::vector<SavedUse> saved_uses(PlacedEdit& edit, ValueId value, int device);

/// Whether backward reads the value itself, on that device.
bool is_saved(PlacedEdit& edit, ValueId value, int device);

/// Per value the one in whose bytes it lies, as a view on the same device: itself where it is none.
std::vector<ValueId> view_roots(PlacedEdit& edit);

/// The node's gradient looks for its result among its inputs' elements, so that backward must find
/// them in the very bits that the result was made from.
bool gradient_compares(const Node& node);

}  // namespace tandem
