// Orders each update right after the last of its operands, while the gradient is still in cache.
#include <algorithm>

#include "engine/lower/placed_graph.h"

namespace tandem {

PlacedGraph early_updates(PlacedGraph placed, const LowerContext&) {
  const Graph& graph = placed.graph;
  // keys[n]: where the node would like to be; an update just after the latest node it waits for.
  std::vector<double> keys(graph.nodes.size());
  const std::vector<std::vector<NodeId>> readers = readers_of(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    keys[n] = static_cast<double>(n);
    if (node.phase != Phase::update) continue;
    double after = -1;
    for (ValueId input : node.inputs) {
      if (!input) continue;
      const NodeId producer = graph.value(input).producer;
      if (producer) after = std::max(after, keys[producer.index]);
    }
    if (after >= 0) keys[n] = after + 1e-6;
    // What is fed (the learning rate) crosses before anything waits for it.
    if (after < 0 && node.op->role == Role::transfer) keys[n] = -1;
  }
  return tidy(std::move(placed), keys);
}

}  // namespace tandem
