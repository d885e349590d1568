// Conv followed by a residual Add and a Relu becomes ConvFused, where the device has a kernel for
// it.
#include "engine/lower/placed_graph.h"
#include "engine/operators/activation.h"
#include "engine/operators/scalar_functions.h"

namespace tandem {
namespace {

bool put_convolution(PlacedEdit& edit, NodeId id, const std::vector<NodeId>& chain,
                     ValueId residual, Activation activation) {
  const Node conv = edit.graph().node(id);
  const NodeId last = chain.back();
  Attributes attributes = conv.attributes;
  attributes.set("activation", name_of(activation));
  const ValueId bias = conv.inputs.size() > 2 ? conv.inputs[2] : ValueId{};
  const NodeId fused = edit.add("ConvFused", {conv.inputs[0], conv.inputs[1], bias, residual},
                                std::move(attributes), last, chain);
  edit.graph().node(fused).path = conv.path;
  if (!edit.stays_if_fast(fused)) return false;
  edit.replace(edit.graph().node(last).outputs[0], edit.graph().node(fused).outputs[0]);
  return true;
}

void try_convolution(PlacedEdit& edit, NodeId id) {
  const Graph& graph = edit.graph();
  const ValueId y = graph.node(id).outputs[0];
  const NodeId next = edit.only_reader(y);
  if (!next || edit.device(next) != edit.device(id)) return;
  const Node reader = graph.node(next);
  if (reader.op->scalar == ScalarFunction::relu) {
    put_convolution(edit, id, {id, next}, {}, Activation::relu);
    return;
  }
  if (reader.op->scalar != ScalarFunction::add) return;
  const ValueId residual = reader.inputs[0] == y ? reader.inputs[1] : reader.inputs[0];
  if (residual == y || !(graph.type(residual) == graph.type(y))) return;
  const NodeId activated = edit.only_reader(reader.outputs[0]);
  if (activated && graph.node(activated).op->scalar == ScalarFunction::relu &&
      edit.device(activated) == edit.device(id) &&
      put_convolution(edit, id, {id, next, activated}, residual, Activation::relu)) {
    return;
  }
  put_convolution(edit, id, {id, next}, residual, Activation::none);
}

}  // namespace

PlacedGraph convolution_epilogues(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  for (const NodeId id : edit.nodes()) {
    if (edit.graph().node(id).op->role == Role::convolution) try_convolution(edit, id);
  }
  return edit.finish();
}

}  // namespace tandem
