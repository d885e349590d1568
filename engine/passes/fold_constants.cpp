// Computes nodes whose inputs are all constants, within limits, through the context's evaluator.
#include "engine/graph/rewrite.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

constexpr double most_operations = 1e8;

/// Whether a node may be folded, by the types in the old graph; whether its inputs are constants is
/// looked up in the new one.
bool small_enough(const Graph& graph, const Node& node, std::size_t most_bytes) {
  if (node.op->random || !node.op->aliases.empty()) return false;
  if (node.op->role == Role::collective) return false;  // other ranks have other constants
  std::size_t bytes = 0;
  for (ValueId output : node.outputs) bytes += graph.type(output).bytes();
  return bytes <= most_bytes && cost_of(graph, node).flops <= most_operations;
}

}  // namespace

Graph fold_constants(const Graph& graph, PassContext& context) {
  if (!context.evaluate) return graph;
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    if (!small_enough(graph, graph.node(id), context.most_constant_bytes)) return false;
    const Node& node = graph.node(id);
    std::vector<HostTensor> inputs;
    for (const ValueId input : node.inputs) {
      const ValueId value =
          to.mapped(input);  // an input folded just before is a constant of the new graph
      const Graph& made = to.builder().graph();
      if (value && !made.is_constant(value)) return false;
      inputs.push_back(value ? *made.value(value).constant : HostTensor());
    }
    const std::vector<HostTensor> outputs = context.evaluate(graph, node, inputs);
    if (outputs.size() != node.outputs.size()) return false;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      to.replace(node.outputs[i], to.builder().constant(outputs[i]));
    }
    return true;
  });
}

}  // namespace tandem
