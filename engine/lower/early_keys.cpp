#include "engine/lower/early_keys.h"

#include <algorithm>

#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

// A weight that comes together of the ranks' parts: what gathers them, and what stands between that
// and the state, the state's Assign last.
struct GatheredWeight {
  std::size_t gather = 0;
  std::vector<std::size_t> behind;
};

std::vector<GatheredWeight> gathered_weights(const Graph& graph) {
  std::vector<GatheredWeight> found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& assign = graph.nodes[n];
    if (assign.phase != Phase::update || assign.op->name != "Assign") continue;
    GatheredWeight weight{0, {n}};
    for (NodeId made = graph.value(assign.inputs[1]).producer; made;) {
      const Node& node = graph.node(made);
      if (node.op->role == Role::collective) {
        weight.gather = static_cast<std::size_t>(made.index);
        if (collective_kind(node) == CollectiveKind::all_gather) found.push_back(weight);
        break;
      }
      if (!is_view(node) && node.op->name != "Slice") break;
      weight.behind.insert(weight.behind.begin(), static_cast<std::size_t>(made.index));
      made = graph.value(node.inputs[0]).producer;
    }
  }
  return found;
}

// A weight is written once the next one's parts are under way, so that ranks gather without a pause
// while the device updates; two whole weights are in flight then, and no more.
void write_behind_next_gather(const Graph& graph, std::vector<double>& keys) {
  std::vector<GatheredWeight> weights = gathered_weights(graph);
  std::stable_sort(weights.begin(), weights.end(),
                   [&](const GatheredWeight& a, const GatheredWeight& b) {
                     return keys[a.gather] < keys[b.gather];
                   });
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    double key = keys[weights[i + 1].gather];
    for (const std::size_t n : weights[i].behind) {
      key += 1e-8;
      keys[n] = std::max(keys[n], key);
    }
  }
}

}  // namespace

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
  write_behind_next_gather(graph, keys);
  return keys;
}

}  // namespace tandem
