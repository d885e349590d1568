// Cuts the graph where it crosses devices: one Transfer per value and destination, shared by all
// its readers there. Constants are laid down on each device instead.
#include <cassert>
#include <map>
#include <tuple>

#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

constexpr int host = 0;  // where inputs are fed and outputs are read

class Cut {
 public:
  explicit Cut(PlacedEdit& edit) : edit_(edit), count_(edit.graph().nodes.size()) {
    const Graph& graph = edit.graph();
    home_.assign(graph.values.size(), host);
    for (std::size_t n = 0; n < count_; ++n) {
      for (ValueId output : graph.nodes[n].outputs) home_[output.index] = edit.device(id_of(n));
    }
    is_parameter_.assign(graph.values.size(), 0);
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      const State& state = graph.states[s];
      home_[state.initial.index] = edit.state_device(s);
      is_parameter_[state.initial.index] = state.kind == StateKind::parameter;
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
        if (node.op->name == "Transfer") {  // crosses by itself, between accelerators by the host
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
    const NodeId node = edit_.add("Transfer", {value, ValueId{}}, {}, producer ? producer : reader);
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
  std::vector<int> home_;           // per value
  std::vector<char> is_parameter_;  // per value: the initial value of a parameter
  std::map<std::int32_t, int> constant_home_;
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
