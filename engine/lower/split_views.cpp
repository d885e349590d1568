// Split becomes one Slice view per output that is read.
#include "engine/lower/placed_graph.h"

namespace tandem {

PlacedGraph split_views(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  for (const NodeId id : edit.nodes()) {
    const Node node = edit.graph().node(id);
    if (node.op->name != "Split") continue;
    const Shape shape = edit.graph().type(node.inputs[0]).shape;
    const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
    const Ints& sizes = node.attributes.integers("sizes");
    std::int64_t start = 0;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Ints starts(shape.size(), 0), extents(shape), steps(shape.size(), 1);
      starts[axis] = start;
      extents[axis] = sizes[i];
      start += sizes[i];
      const ValueId output = node.outputs[i];
      if (!output || (edit.readers(output).empty() && !edit.is_kept(output))) continue;
      const NodeId slice = edit.add("Slice", {node.inputs[0]},
                                    {{"starts", std::move(starts)},
                                     {"sizes", std::move(extents)},
                                     {"steps", std::move(steps)}},
                                    id);
      edit.replace(output, edit.graph().node(slice).outputs[0]);
    }
  }
  return edit.finish();
}

}  // namespace tandem
