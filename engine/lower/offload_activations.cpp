// Results of operators with `acts = offload` wait for backward on the host: one copy out after
// their last use in forward, one copy back ahead of the first use in backward.
//
// What comes back has the bits that went out: gradients that compare a result with its input
// (`gradient_compares`) need that, whether one of the two went out or both.
#include <map>

#include "engine/lower/saved_values.h"

namespace tandem {
namespace {

constexpr std::size_t smallest = 1024;  // bytes that are worth a copy

class Offload {
 public:
  explicit Offload(PlacedEdit& edit) : edit_(edit) {}

  void run() {
    for (const NodeId id : edit_.nodes()) {
      const Node& node = edit_.graph().node(id);
      if (edit_.place(id).acts != Activations::offload || edit_.device(id) == host) continue;
      if (node.phase != Phase::forward || is_view(node) || node.op->role == Role::transfer)
        continue;
      for (std::size_t i = 0; i < edit_.graph().node(id).outputs.size(); ++i) {
        const ValueId value = edit_.graph().node(id).outputs[i];
        if (edit_.graph().type(value).bytes() >= smallest) move(value, id);
      }
    }
  }

 private:
  void move(ValueId value, NodeId producer) {
    const std::vector<SavedUse> uses = saved_uses(edit_, value, edit_.device(producer));
    if (uses.empty()) return;
    NodeId first = uses[0].reader;
    for (const SavedUse& use : uses) {
      if (use.reader.index < first.index) first = use.reader;
    }
    const auto lookahead = static_cast<std::int64_t>(edit_.place(producer).lookahead);
    const ValueId away = on_host(value, producer, lookahead);
    const NodeId back = edit_.add("Transfer", {away, ValueId{}}, {{"lookahead", lookahead}}, first);
    const ValueId here = edit_.graph().node(back).outputs[0];
    edit_.graph().value(here).name = edit_.graph().value(value).name + "@" +
                                     edit_.context().devices[edit_.device(producer)]->name() +
                                     "/backward";
    views_.clear();
    views_[value.index] = here;
    for (const SavedUse& use : uses) {
      const ValueId by = seen(use.read, first);
      for (ValueId& input : edit_.graph().node(use.reader).inputs) {
        if (input == use.read) input = by;
      }
    }
  }

  // The copy that exists already for a reader on the host, or a new one.
  ValueId on_host(ValueId value, NodeId producer, std::int64_t lookahead) {
    for (NodeId reader : edit_.readers(value)) {
      Node& node = edit_.graph().node(reader);
      if (node.op->role != Role::transfer || edit_.device(reader) != host || node.inputs[1])
        continue;
      node.attributes.set("lookahead", lookahead);
      return node.outputs[0];
    }
    const NodeId out =
        edit_.add("Transfer", {value, ValueId{}}, {{"lookahead", lookahead}}, producer);
    edit_.set_device(out, host);
    const ValueId away = edit_.graph().node(out).outputs[0];
    edit_.graph().value(away).name =
        edit_.graph().value(value).name + "@" + edit_.context().devices[host]->name();
    return away;
  }

  // The value, or a view of it that forward made, seen in the copy that came back.
  ValueId seen(ValueId value, NodeId first) {
    const auto known = views_.find(value.index);
    if (known != views_.end()) return known->second;
    const NodeId view = edit_.graph().value(value).producer;
    const Node node = edit_.graph().node(view);
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = seen(inputs[0], first);
    const NodeId again = edit_.add(node.op->name, std::move(inputs), node.attributes, view);
    edit_.graph().node(again).phase = Phase::backward;
    edit_.set_key(again, static_cast<double>(first.index) - 0.5);
    const int output = edit_.graph().value(value).output_index;
    return views_[value.index] = edit_.graph().node(again).outputs[output];
  }

  PlacedEdit& edit_;
  std::map<std::int32_t, ValueId> views_;  // values as they are seen in the copy
};

}  // namespace

PlacedGraph offload_activations(PlacedGraph placed, const LowerContext& context) {
  if (context.devices.size() < 2) return placed;
  PlacedEdit edit(std::move(placed), context);
  Offload(edit).run();
  return edit.finish();
}

}  // namespace tandem
