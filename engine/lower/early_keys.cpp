#include "engine/lower/early_keys.h"

#include <algorithm>

#include "engine/lower/collectives/gathered_weights.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

// A weight that is not gathered in place is written once the next exchange has started, so that
// ranks gather without a pause while the device updates; at most two exchanges' results are held
// at a time.
void write_behind_next_gather(const Graph& graph, std::vector<double>& keys) {
  std::vector<GatheredWeight> weights = gathered_weights(graph);
  std::stable_sort(weights.begin(), weights.end(),
                   [&](const GatheredWeight& a, const GatheredWeight& b) {
                     return keys[a.gather.index] < keys[b.gather.index];
                   });
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto next = std::find_if(
        weights.begin() + static_cast<std::ptrdiff_t>(i), weights.end(),
        [&](const GatheredWeight& other) { return !(other.gather == weights[i].gather); });
    if (next == weights.end()) break;
    double key = keys[next->gather.index];
    for (const NodeId node : weights[i].behind) {
      key += 1e-8;
      keys[node.index] = std::max(keys[node.index], key);
    }
  }
}

}  // namespace

std::vector<double> early_keys(const Graph& graph) {
  const auto count = static_cast<double>(graph.nodes.size());
  std::vector<double> keys(graph.nodes.size());
  std::vector<char> exchanged(graph.nodes.size(), 0);  // depends on what ranks exchange
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
  write_behind_next_gather(graph, keys);
  return keys;
}

}  // namespace tandem
