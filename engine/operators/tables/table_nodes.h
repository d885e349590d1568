// Which nodes read rows of a table that their ids name.
#pragma once

#include <algorithm>

#include "engine/graph/graph.h"
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

/// Whether nothing but lookups reads the table, so that parameters.shape may set its rows.
inline bool only_lookups_read(const Graph& graph, ValueId table) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return is_row_lookup(node) ||
           std::find(node.inputs.begin(), node.inputs.end(), table) == node.inputs.end();
  });
}

}  // namespace tandem
