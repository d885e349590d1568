#include "engine/lower/early_keys.h"

#include <algorithm>

namespace tandem {

std::vector<double> early_keys(const Graph& graph) {
  const auto count = static_cast<double>(graph.nodes.size());
  std::vector<double> keys(graph.nodes.size());
  std::vector<char> exchanged(graph.nodes.size(), 0);  // follows from what ranks exchange
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    keys[n] = static_cast<double>(n);
    if (node.phase != Phase::update) continue;
    double after = -1;
    for (ValueId input : node.inputs) {
      const NodeId producer = input ? graph.value(input).producer : NodeId{};
      if (!producer) continue;
      after = std::max(after, keys[producer.index]);
      exchanged[n] |= exchanged[producer.index];
    }
    const bool computes =
        node.op->role != Role::collective && node.op->role != Role::transfer && !is_view(node);
    if (exchanged[n] && computes && after < count) after += count;
    exchanged[n] |= node.op->role == Role::collective;
    if (after >= 0) keys[n] = after + 1e-6;
    // What is fed (the learning rate) crosses before anything waits for it.
    if (after < 0 && node.op->role == Role::transfer) keys[n] = -1;
  }
  return keys;
}

}  // namespace tandem
