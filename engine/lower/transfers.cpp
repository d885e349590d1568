// Cuts the graph where it crosses devices: one Transfer per value and destination, shared by all
// its readers there. Constants are stored on each device instead.
#include <cassert>
#include <map>
#include <tuple>

#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

class Cut {
 public:
  explicit Cut(PlacedEdit& edit) : edit_(edit), count_(edit.graph().nodes.size()) {
    const Graph& graph = edit.graph();
    home_.assign(graph.values.size(), host);
    for (std::size_t n = 0; n < count_; ++n) {
      const Node& node = graph.nodes[n];
      for (ValueId output : node.outputs) home_[output.index] = edit.device(id_of(n));
      first_inputs_.push_back(node.inputs.empty() ? ValueId{} : node.inputs[0]);
    }
    is_parameter_.assign(graph.values.size(), 0);
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      const State& state = graph.states[s];
      home_[state.initial.index] = edit.state_device(s);
      is_parameter_[state.initial.index] = state.kind == StateKind::parameter;
      lookahead_[state.initial.index] = edit.place(s).lookahead;
      assert(home_[state.final.index] == edit.state_device(s) && "a state is written at home");
    }
  }

  void run() {
    for (std::size_t n = 0; n < count_; ++n) {
      const std::size_t inputs = edit_.graph().nodes[n].inputs.size();
      for (std::size_t i = 0; i < inputs; ++i) {
        const Node& node = edit_.graph().nodes[n];
        const ValueId input = node.inputs[i];
        if (!input) continue;
        int device = edit_.device(id_of(n));
        if (node.phase == Phase::backward) {
          if (const ValueId again = view_again(input, device, id_of(n))) {
            edit_.graph().nodes[n].inputs[i] = again;
            continue;
          }
        }
        if (node.op->role ==
            Role::transfer) {  // crosses already, between accelerators through the host
          assert((i < 2 || home_[input.index] == host) && "the host counts the rows of a copy");
          if (i > 0 || device == host || home_[input.index] == host) continue;
          device = host;
        }
        const ValueId here = on_device(input, device, id_of(n));
        edit_.graph().nodes[n].inputs[i] = here;  // the graph's nodes may have moved
      }
    }
    for (NamedValue& output : edit_.graph().outputs) {
      if (edit_.graph().is_constant(output.value) || home_[output.value.index] == host) continue;
      const NodeId producer = edit_.graph().value(output.value).producer;
      const ValueId here = on_device(output.value, host, producer ? producer : NodeId{0});
      output.value = here;
    }
  }

 private:
  static NodeId id_of(std::size_t n) { return NodeId{static_cast<std::int32_t>(n)}; }

  // The value as a node of that device reads it; `reader` needs it first.
  ValueId on_device(ValueId value, int device, NodeId reader) {
    if (edit_.graph().is_constant(value)) return constant_on(value, device);
    const int home = home_[value.index];
    if (home == device) return value;
    if (home != host && device != host)
      return on_device(on_device(value, host, reader), device, reader);
    // A parameter that lives elsewhere is fetched for forward and again for backward, so that it
    // needs no room in between.
    const bool again =
        is_parameter_[value.index] && edit_.graph().node(reader).phase == Phase::backward;
    ValueId& there = transferred_[{value.index, device, again}];
    if (there) return there;
    const NodeId producer = edit_.graph().value(value).producer;
    Attributes attributes;
    if (is_parameter_[value.index] && device != host)
      attributes.set("lookahead", std::int64_t{lookahead_.at(value.index)});
    const NodeId node = edit_.add("Transfer", {value, ValueId{}}, std::move(attributes),
                                  producer ? producer : reader);
    edit_.set_device(node, device);
    there = edit_.graph().node(node).outputs[0];
    home_.resize(edit_.graph().values.size(), host);
    is_parameter_.resize(edit_.graph().values.size(), 0);
    home_[there.index] = device;
    edit_.graph().value(there).name = edit_.graph().value(value).name + "@" +
                                      edit_.context().devices[device]->name() +
                                      (again ? "/backward" : "");
    return there;
  }

  // A view that forward made of its fetched copy of a parameter, made again of backward's copy; -1
  // where `value` is no such view.
  ValueId view_again(ValueId value, int device, NodeId reader) {
    const NodeId view = edit_.graph().value(value).producer;
    if (!view || view.index >= static_cast<std::int32_t>(count_)) return {};
    const Node node = edit_.graph().node(view);
    if (!is_view(node) || node.phase != Phase::forward || edit_.device(view) != device) return {};
    const auto known = views_again_.find(value.index);
    if (known != views_again_.end()) return known->second;
    const ValueId from = first_inputs_[view.index];
    const bool fetched = is_parameter_[from.index] && home_[from.index] != device;
    const ValueId base =
        fetched ? on_device(from, device, reader) : view_again(from, device, reader);
    if (!base) return {};
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = base;
    const NodeId again = edit_.add(node.op->name, std::move(inputs), node.attributes, reader);
    Node& made = edit_.graph().node(again);
    made.path = node.path;
    made.origins = node.origins;
    home_.resize(edit_.graph().values.size(), device);
    is_parameter_.resize(edit_.graph().values.size(), 0);
    const ValueId seen = made.outputs[edit_.graph().value(value).output_index];
    return views_again_[value.index] = seen;
  }

  ValueId constant_on(ValueId value, int device) {
    const auto [found, first] = constant_home_.try_emplace(value.index, device);
    if (first || found->second == device) return value;
    ValueId& there = transferred_[{value.index, device, false}];
    if (there) return there;
    Value copy = edit_.graph().value(value);
    copy.name += "@" + edit_.context().devices[device]->name();
    there = edit_.add_value(std::move(copy));
    home_.resize(edit_.graph().values.size(), host);
    is_parameter_.resize(edit_.graph().values.size(), 0);
    return there;
  }

  PlacedEdit& edit_;
  std::size_t count_;
  std::vector<ValueId> first_inputs_;      // per node: its first input before the cut
  std::vector<int> home_;                  // per value
  std::vector<char> is_parameter_;         // per value: the initial value of a parameter
  std::map<std::int32_t, int> lookahead_;  // by the initial value of a state
  std::map<std::int32_t, int> constant_home_;
  std::map<std::int32_t, ValueId> views_again_;
  std::map<std::tuple<std::int32_t, int, bool>, ValueId> transferred_;
};

}  // namespace

PlacedGraph add_transfers(PlacedGraph placed, const LowerContext& context) {
  if (context.devices.size() < 2) return placed;
  PlacedEdit edit(std::move(placed), context);
  Cut(edit).run();
  return edit.finish();
}

}  // namespace tandem
