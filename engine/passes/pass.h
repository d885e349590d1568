// Passes over the forward graph, before the gradient: named, timed, switchable, verified after
// each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem {

/// Computes one node on constants: all its outputs, row-major. `inputs` has one tensor per input of
/// the node; an absent optional one is default-constructed. An exception means: cannot be folded.
using Evaluator = std::function<std::vector<HostTensor>(const Graph& graph, const Node& node,
                                                        const std::vector<HostTensor>& inputs)>;

struct PassContext {
  const OperatorSet& operators;
  Evaluator evaluate;  // empty: nothing is folded
  /// Whether nodes may become one: only where their policy attributes are equal. Empty: always.
  std::function<bool(const std::vector<std::string>& paths)> may_merge;
  std::vector<std::string> notes;               // what was recognised: "blocks.0.MatMul: Attention"
  std::size_t most_constant_bytes = 64u << 20;  // results of folding; larger ones stay computed
};

/// False where the policy keeps the nodes apart.
bool may_become_one(const PassContext& context, const Graph& graph, NodeId node,
                    const std::vector<NodeId>& others);

struct GraphPass {
  std::string name;
  Graph (*run)(const Graph& graph, PassContext& context);
};

struct PassTime {
  std::string name;
  double seconds = 0;
};

/// The ordered list.
const std::vector<GraphPass>& forward_passes();

/// Runs the list without the passes named in `disabled`; verifies the graph after each.
Graph run_passes(Graph graph, PassContext& context, const std::vector<std::string>& disabled = {},
                 std::vector<PassTime>* times = nullptr);

#define TANDEM_FORWARD_PASS(name, run) Graph run(const Graph& graph, PassContext& context);
#include "engine/passes/forward_passes.inl"

}  // namespace tandem
