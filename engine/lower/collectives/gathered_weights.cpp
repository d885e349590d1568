#include "engine/lower/collectives/gathered_weights.h"

#include "engine/lower/placed_graph.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {

std::vector<GatheredWeight> gathered_weights(const Graph& graph) {
  std::vector<GatheredWeight> found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& assign = graph.nodes[n];
    if (assign.phase != Phase::update || assign.op->name != "Assign") continue;
    GatheredWeight weight{{}, {node_id(n)}};
    for (NodeId made = graph.value(assign.inputs[1]).producer; made;) {
      const Node& node = graph.node(made);
      if (node.op->role == Role::collective) {
        weight.gather = made;
        if (node.op->name == all_gather_name) found.push_back(weight);
        break;
      }
      if (!is_view(node)) break;
      weight.behind.insert(weight.behind.begin(), made);
      made = graph.value(node.inputs[0]).producer;
    }
  }
  return found;
}

}  // namespace tandem
