// Runs the forward passes in order.
#include <algorithm>
#include <chrono>

#include "engine/graph/rewrite.h"
#include "engine/passes/pass.h"

namespace tandem {

const std::vector<GraphPass>& forward_passes() {
  static const std::vector<GraphPass> list{
#define TANDEM_FORWARD_PASS(name, run) {#name, run},
#include "engine/passes/forward_passes.inl"
  };
  return list;
}

bool may_become_one(const PassContext& context, const Graph& graph, NodeId node,
                    const std::vector<NodeId>& others) {
  if (!context.may_merge) return true;
  std::vector<std::string> paths{graph.node(node).path};
  for (const NodeId other : others) paths.push_back(graph.node(other).path);
  return context.may_merge(paths);
}

Graph run_passes(Graph graph, PassContext& context, const std::vector<std::string>& disabled,
                 std::vector<PassTime>* times) {
  using Clock = std::chrono::steady_clock;
  graph = remove_dead(graph, context.operators);
  for (const GraphPass& pass : forward_passes()) {
    if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) continue;
    const Clock::time_point start = Clock::now();
    graph = remove_dead(pass.run(graph, context), context.operators);
    verify(graph);
    if (times != nullptr) {
      times->push_back({pass.name, std::chrono::duration<double>(Clock::now() - start).count()});
    }
  }
  return graph;
}

}  // namespace tandem
