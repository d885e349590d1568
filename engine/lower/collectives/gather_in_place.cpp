// Ranks gather a weight directly into its state: no buffer for the gathered one, no copy of it.
// Not where the weight has another layout than the parts, where it is gathered on another device,
// or where something else writes it last.
#include "engine/lower/collectives/gathered_weights.h"
#include "engine/lower/layout_plan.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

// Whether the view has the elements in the order of the parts: from the first one on, in any shape.
bool keeps_order(const Node& view) {
  if (view.op->role == Role::reshape) return true;
  return view.op->name == "Slice" && view.attributes.integers("starts") == Ints{0} &&
         view.attributes.integers("steps") == Ints{1};
}

// The state that the weight's Assign is the last to write, or -1.
int written_state(const Graph& graph, const Node& assign) {
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    const State& state = graph.states[s];
    if (state.initial == assign.inputs[0] && state.final == assign.outputs[0])
      return static_cast<int>(s);
  }
  return -1;
}

}  // namespace

PlacedGraph gather_in_place(PlacedGraph placed, const LowerContext& context) {
  const std::vector<GatheredWeight> weights = gathered_weights(placed.graph);
  if (weights.empty()) return placed;
  const std::vector<Layout> layouts = plan_layouts(placed, context).states;
  PlacedEdit edit(std::move(placed), context);
  for (const GatheredWeight& weight : weights) {
    const Node gather = edit.graph().node(weight.gather),
               assign = edit.graph().node(weight.behind.back());
    const int s = written_state(edit.graph(), assign);
    if (s < 0 || gather.inputs.size() != 1) continue;
    const int device = edit.device(weight.gather);
    if (edit.device(weight.behind.back()) != device || edit.state_device(s) != device) continue;
    const TensorType& type = edit.graph().type(assign.inputs[0]);
    if (!is_row_major(layouts[static_cast<std::size_t>(s)], type.shape)) continue;
    const std::int64_t ranks = gather.attributes.integer("ranks");
    const Shape part{(type.elements() + ranks - 1) / ranks};
    bool fits = edit.graph().type(gather.inputs[0]).shape == part;
    ValueId value = gather.outputs[0];
    for (const NodeId next : weight.behind) {
      const Node& node = edit.graph().node(next);
      fits = fits && edit.only_reader(value) == next;
      fits = fits && (next == weight.behind.back() || keeps_order(node));
      value = node.outputs[0];
    }
    if (!fits) continue;
    const NodeId in_place = edit.add(gather_states_name, {assign.inputs[0], gather.inputs[0]},
                                     {{"ranks", ranks}}, weight.gather);
    edit.replace(assign.outputs[0], edit.graph().node(in_place).outputs[0]);
  }
  return edit.finish();
}

}  // namespace tandem
