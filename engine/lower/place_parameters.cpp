// A parameter in two places: the master (`state`: read and written by the update) and the weight
// (`param`: read by forward and backward), refreshed in place after each update.
#include "engine/lower/placed_graph.h"
#include "engine/operators/grouped_update.h"

namespace tandem {
namespace {

// Makes the update also write the master in the weight's type; returns that result. `weight`: what
// it overwrites, where that is on its own device.
ValueId with_weight_output(PlacedEdit& edit, NodeId update, DType dtype, ValueId weight) {
  const Node node = edit.graph().node(update);
  Attributes attributes = node.attributes;
  attributes.set("weight", std::string(name_of(dtype)));
  std::vector<ValueId> inputs = node.inputs;
  inputs.resize(old_weight(node) + 1);
  inputs.back() = weight;
  const NodeId wider = edit.add(node.op->name, std::move(inputs), std::move(attributes), update);
  const std::vector<ValueId> outputs = edit.graph().node(wider).outputs;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) edit.replace(node.outputs[i], outputs[i]);
  return outputs.back();
}

// The master in the weight's type, for an update of another kind, or anything else that writes the
// master last. `weight`: what it overwrites, where that is on its own device.
ValueId converted(PlacedEdit& edit, ValueId master, DType dtype, ValueId weight) {
  const NodeId writer = edit.graph().value(master).producer;
  const NodeId cast = edit.add("Cast", {master}, {{"to", std::string(name_of(dtype))}}, writer);
  const ValueId narrow = edit.graph().node(cast).outputs[0];
  if (!weight) return narrow;
  const NodeId assign = edit.add("Assign", {weight, narrow}, {}, writer);
  return edit.graph().node(assign).outputs[0];
}

}  // namespace

bool makes_weight(const Node& writer) {
  return is_optimizer_update(writer) && !update_kind(writer).whole_row;
}

ValueId add_weight(PlacedEdit& edit, std::size_t s, int device, DType dtype) {
  Graph& graph = edit.graph();
  const State master = graph.states[s];
  Value value = graph.value(master.initial);
  value.name = master.name + "/weight";
  value.type.dtype = dtype;
  const ValueId weight = edit.add_value(value);
  for (NodeId reader : edit.readers(master.initial)) {
    Node& node = graph.node(reader);
    if (node.phase == Phase::update) continue;
    for (ValueId& input : node.inputs) {
      if (input == master.initial) input = weight;
    }
  }
  State state;
  state.name = value.name;
  state.path = master.path;
  state.kind = StateKind::parameter;
  state.initial = state.final = weight;
  state.derived = Mirror{master.name};
  state.start = dtype == master.start.dtype() ? master.start : master.start.converted(dtype);
  if (!(master.final == master.initial)) {
    const NodeId update = graph.value(master.final).producer;
    const bool is_here = edit.state_device(s) == device;
    const ValueId overwritten = is_here ? weight : ValueId{};
    ValueId fresh = master.final;
    if (dtype != master.start.dtype()) {
      fresh = makes_weight(graph.node(update))
                  ? with_weight_output(edit, update, dtype, overwritten)
                  : converted(edit, master.final, dtype, overwritten);
    }
    if (!(fresh == master.final)) edit.graph().value(fresh).name = value.name + "/new";
    state.final = fresh;
    if (!is_here) {
      const NodeId refresh = edit.add("Transfer", {fresh, weight}, {}, update);
      edit.set_device(refresh, device);
      state.final = edit.graph().node(refresh).outputs[0];
      edit.graph().value(state.final).name = value.name + "/arrived";
    }
  }
  edit.add_state(std::move(state), device, edit.place(s).lookahead);
  edit.place(s).param = edit.state_device(s);  // no other device reads the master any more
  return weight;
}

PlacedGraph place_parameters(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  const std::size_t count = edit.graph().states.size();
  for (std::size_t s = 0; s < count; ++s) {
    const int weight = edit.place(s).param;
    if (weight == edit.state_device(s)) continue;
    add_weight(edit, s, weight, edit.graph().type(edit.graph().states[s].initial).dtype);
  }
  return edit.finish();
}

}  // namespace tandem
