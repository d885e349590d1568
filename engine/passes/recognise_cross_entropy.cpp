// NegativeLogLikelihood(LogSoftmax(logits)) becomes SoftmaxCrossEntropy.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {

Graph recognise_cross_entropy(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    if (node.op->name != "NegativeLogLikelihood") return false;
    const Node* log_softmax = match.is(node.inputs[0], "LogSoftmax");
    if (log_softmax == nullptr || log_softmax->attributes.integer("axis") != 1) return false;
    std::vector<ValueId> inputs{to.mapped(log_softmax->inputs[0])};
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      inputs.push_back(to.mapped(node.inputs[i]));
    const std::vector<NodeId> others = match.interior(node.outputs[0], {log_softmax->inputs[0]});
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    to.replace(node.outputs[0], to.builder().add_node("SoftmaxCrossEntropy", std::move(inputs)));
    context.notes.push_back(node.path + ": SoftmaxCrossEntropy");
    return true;
  });
}

}  // namespace tandem
