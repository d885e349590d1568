// Saved values: results of forward that stay in memory because backward reads them.
#pragma once

#include <vector>

#include "engine/lower/placed_graph.h"

namespace tandem {

/// A node of backward that reads a value of forward, or a view of it that forward made.
struct SavedUse {
  NodeId reader;
  ValueId read;
};

/// The uses of `value` on that device; copies to another device are no uses.
std::vector<SavedUse> saved_uses(PlacedEdit& edit, ValueId value, int device);

/// Whether backward reads the value itself, on that device.
bool is_saved(PlacedEdit& edit, ValueId value, int device);

/// Per value: the one that it is a view of, on the same device; itself where it is no view.
std::vector<ValueId> view_roots(PlacedEdit& edit);

/// Whether the node's gradient looks for the result among the elements of its inputs, so that
/// backward needs exactly the bits that the result was made from.
bool gradient_compares(const Node& node);

}  // namespace tandem
