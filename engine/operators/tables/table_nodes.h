// Which nodes read rows of a table that their ids name.
#pragma once

#include "engine/operators/operator.h"

namespace tandem {

/// Whether the node looks up a row of input 0 for each id: a lookup along axis 0.
inline bool looks_up_rows(const Node& node) {
  return node.op->role == Role::lookup && node.attributes.integer("axis") == 0;
}

/// Whether the node's input 0 is a table of which it reads the rows that its ids name.
inline bool is_row_lookup(const Node& node) {
  return looks_up_rows(node) || node.op->role == Role::embedding_bag;
}

}  // namespace tandem
