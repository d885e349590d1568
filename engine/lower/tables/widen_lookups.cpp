// Cast(Gather(x, ids)) to a wider float, views in between or not, becomes a Gather that writes the
// wider float itself, where the device has a kernel for it.
#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

// The views from `value` back to a Gather, and that Gather, each read only by the next; empty where
// there is none.
std::vector<NodeId> chain_above(PlacedEdit& edit, ValueId value, int device) {
  const Graph& graph = edit.graph();
  std::vector<NodeId> chain;
  for (;;) {
    const NodeId producer = graph.value(value).producer;
    if (!producer || edit.device(producer) != device || !edit.only_reader(value)) return {};
    const Node& node = graph.node(producer);
    chain.push_back(producer);
    if (node.op->name == "Gather" && node.attributes.text("to").empty()) return chain;
    if (!is_view(node)) return {};
    value = node.inputs[0];
  }
}

}  // namespace

PlacedGraph widen_lookups(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  for (const NodeId id : edit.nodes()) {
    const Node cast = edit.graph().node(id);
    if (cast.op->name != "Cast") continue;
    const DType to = cast.attributes.dtype("to");
    const DType from = edit.graph().type(cast.inputs[0]).dtype;
    if (!is_float(to) || !is_float(from) || size_of(to) <= size_of(from)) continue;
    const std::vector<NodeId> chain = chain_above(edit, cast.inputs[0], edit.device(id));
    if (chain.empty()) continue;
    const Node gather = edit.graph().node(chain.back());
    Attributes attributes = gather.attributes;
    attributes.set("to", std::string(name_of(to)));
    const NodeId wide =
        edit.add("Gather", gather.inputs, std::move(attributes), chain.back(), {id});
    if (!edit.stays_if_fast(wide)) continue;
    ValueId y = edit.graph().node(wide).outputs[0];
    for (std::size_t i = chain.size() - 1; i-- > 0;) {
      const Node view = edit.graph().node(chain[i]);
      std::vector<ValueId> inputs = view.inputs;
      inputs[0] = y;
      const NodeId same = edit.add(view.op->name, std::move(inputs), view.attributes, chain[i]);
      y = edit.graph().node(same).outputs[0];
    }
    edit.replace(cast.outputs[0], y);
  }
  return edit.finish();
}

}  // namespace tandem
