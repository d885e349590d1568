// A cross-entropy and its gradient become one node, which reads the logits once from memory:
//   SoftmaxCrossEntropy + SoftmaxCrossEntropyGrad   become   SoftmaxCrossEntropyWithGrad
// where the gradient that flows into the losses is known before them: the loss scale, 1 / count,
// weights of labels. The node runs where the gradient ran, so that dlogits live no longer than
// before; what reads the losses waits for it.
#include <algorithm>

#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

// The node that made the sums which this gradient reads, if it is the loss of the same operands
// and on the same device; else -1.
NodeId loss_of(PlacedEdit& edit, NodeId gradient) {
  const Graph& graph = edit.graph();
  const Node& grad = graph.node(gradient);
  const ValueId sums = grad.inputs[4];
  const NodeId id = graph.value(sums).producer;
  if (!id || graph.value(sums).output_index != 1 || edit.device(id) != edit.device(gradient))
    return {};
  const Node& loss = graph.node(id);
  if (loss.op->name != "SoftmaxCrossEntropy") return {};
  const auto input = [](const Node& node, std::size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : ValueId{};
  };
  for (std::size_t i = 0; i < 3; ++i) {  // logits, labels, weights
    if (!(input(loss, i) == input(grad, i + 1))) return {};
  }
  const bool same_smoothing =
      loss.attributes.number("label_smoothing") == grad.attributes.number("label_smoothing");
  return same_smoothing ? id : NodeId{};
}

// Whether `value` may depend on what `loss` makes. Only nodes after it in the order can; one of
// these that writes a state waits for all readers of the state, and always counts as dependent.
bool may_depend_on(PlacedEdit& edit, ValueId value, NodeId loss) {
  const Graph& graph = edit.graph();
  std::vector<NodeId> seen;
  std::vector<ValueId> todo{value};
  while (!todo.empty()) {
    const NodeId id = todo.back() ? graph.value(todo.back()).producer : NodeId{};
    todo.pop_back();
    if (!id || id.index < loss.index) continue;
    if (id == loss) return true;
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    seen.push_back(id);
    const Node& node = graph.node(id);
    for (const State& state : graph.states) {
      if (graph.value(state.final).producer == id) return true;
    }
    todo.insert(todo.end(), node.inputs.begin(), node.inputs.end());
  }
  return false;
}

}  // namespace

PlacedGraph losses_with_gradients(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  std::vector<char> joined(edit.graph().nodes.size(), 0);
  for (const NodeId id : edit.nodes()) {
    const Node grad = edit.graph().node(id);
    if (grad.op->name != "SoftmaxCrossEntropyGrad") continue;
    const NodeId loss = loss_of(edit, id);
    if (!loss || joined[loss.index] || may_depend_on(edit, grad.inputs[0], loss)) continue;
    const NodeId both = edit.add("SoftmaxCrossEntropyWithGrad",
                                 {grad.inputs[0], grad.inputs[1], grad.inputs[2], grad.inputs[3]},
                                 grad.attributes, id, {loss});
    if (!edit.stays_if_fast(both)) continue;
    joined[loss.index] = 1;
    edit.graph().node(both).phase = Phase::forward;
    const Node& node = edit.graph().node(both);
    const std::vector<ValueId> outputs = edit.graph().node(loss).outputs;
    edit.replace(outputs[0], node.outputs[0]);
    edit.replace(outputs[1], node.outputs[1]);
    edit.replace(grad.outputs[0], node.outputs[2]);
  }
  return edit.finish();
}

}  // namespace tandem
