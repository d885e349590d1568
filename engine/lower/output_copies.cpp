// Outputs that would lie in the storage of a state, an input, a constant or another output get a
// copy.
#include <unordered_set>

#include "engine/lower/placed_graph.h"

namespace tandem {
PlacedGraph output_copies(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  std::unordered_set<std::int32_t> taken;
  const std::size_t count = edit.graph().outputs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const ValueId value = edit.graph().outputs[i].value;
    const NodeId producer = edit.graph().value(value).producer;
    const ValueId base = behind_views(edit.graph(), value);
    const NodeId maker = edit.graph().value(base).producer;
    bool own = static_cast<bool>(maker) && taken.insert(base.index).second;
    if (own) {
      const int output = edit.graph().value(base).output_index;
      own = overwritten_inputs(edit.graph().node(maker))[output] < 0;
    }
    if (own) continue;
    // Right after its producer, so that a later writer of the storage comes after it.
    const NodeId like = producer ? producer : NodeId{0};
    if (edit.graph().nodes.empty()) continue;
    const NodeId copy = edit.add("Copy", {value}, {}, like);
    edit.graph().outputs[i].value = edit.graph().node(copy).outputs[0];
  }
  return edit.finish();
}

}  // namespace tandem
