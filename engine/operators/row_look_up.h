// Which nodes look up rows of a table.
#pragma once

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem {

/// Whether the node's input 0 is a table of which it reads the rows that its ids name.
inline bool is_row_look_up(const Node& node) {
  return node.op->role == Role::embedding_bag ||
         (node.op->role == Role::lookup && node.attributes.integer("axis") == 0);
}

}  // namespace tandem
