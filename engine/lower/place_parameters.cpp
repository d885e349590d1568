// A parameter in two places: the master (`state`: read and written by the update) and the weight
// (`param`: read by forward and backward), refreshed in place after each update.
#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

class Mirror {
 public:
  explicit Mirror(PlacedEdit& edit) : edit_(edit) {}

  void add(std::size_t s, int device) {
    Graph& graph = edit_.graph();
    const State master = graph.states[s];
    Value value = graph.value(master.initial);
    value.name = mirror_name(master.name);
    const ValueId weight = edit_.add_value(std::move(value));
    for (NodeId reader : edit_.readers(master.initial)) {
      Node& node = graph.node(reader);
      if (node.phase == Phase::update) continue;
      for (ValueId& input : node.inputs) {
        if (input == master.initial) input = weight;
      }
    }
    State state;
    state.name = mirror_name(master.name);
    state.path = master.path;
    state.kind = StateKind::parameter;
    state.initial = state.final = weight;
    state.mirror_of = master.name;
    state.start = master.start;
    if (!(master.final == master.initial)) {
      const NodeId update = graph.value(master.final).producer;
      const NodeId refresh = edit_.add("Transfer", {master.final, weight}, {}, update);
      edit_.set_device(refresh, device);
      state.final = edit_.graph().node(refresh).outputs[0];
    }
    edit_.add_state(std::move(state), device);
  }

 private:
  static std::string mirror_name(const std::string& name) { return name + "/weight"; }

  PlacedEdit& edit_;
};

}  // namespace

PlacedGraph place_parameters(PlacedGraph placed, const LowerContext& context) {
  const std::vector<int> weights = placed.weights;
  PlacedEdit edit(std::move(placed), context);
  Mirror mirror(edit);
  for (std::size_t s = 0; s < weights.size(); ++s) {
    if (weights[s] != edit.state_device(s)) mirror.add(s, weights[s]);
  }
  return edit.finish();
}

}  // namespace tandem
