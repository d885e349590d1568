// Copies a graph node by node into a new one while some nodes are replaced: what every pass is made
// of.
#pragma once

#include <functional>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/graph/graph.h"

namespace tandem {

/// Usage: construct, then for each live node either `copy(node)` or build a replacement with
/// `builder()` and `replace(old, new)`, then `finish()`. Dead nodes are those from which neither an
/// output of the graph nor the final value of a state can be reached.
class GraphRewrite {
 public:
  GraphRewrite(const Graph& from, const OperatorSet& operators);

  const Graph& from() const { return from_; }
  GraphBuilder& builder() { return builder_; }
  bool is_live(NodeId node) const { return live_[node.index]; }

  /// The value of the new graph that corresponds to `old`; constants are copied on first use.
  ValueId mapped(ValueId old);
  /// Same operator, attributes, path, phase and origins on the mapped inputs; output names kept.
  void copy(NodeId node);
  /// From now on `old` means `replacement`; a computed replacement takes over old's name.
  void replace(ValueId old, ValueId replacement);
  /// Sets the builder's scope to that of an old node; `merged` adds the origins of other nodes.
  void scope_of(NodeId node, const std::vector<NodeId>& merged = {});

  Graph finish();

 private:
  const Graph& from_;
  GraphBuilder builder_;
  std::vector<ValueId> map_;
  std::vector<bool> live_;
};

/// Removes what reaches neither an output nor a state, also its constants.
Graph remove_dead(const Graph& graph, const OperatorSet& operators);

/// Walks the live nodes; `visit` returns true where it has replaced the node's outputs itself.
Graph rewrite(const Graph& graph, const OperatorSet& operators,
              const std::function<bool(GraphRewrite&, NodeId)>& visit);

}  // namespace tandem
