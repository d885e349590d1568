// Gather with one constant index is a view: a Slice without its axis. Its gradient is a SliceGrad.
#include <optional>

#include "engine/lower/placed_graph.h"
#include "engine/operators/tables/rows.h"

namespace tandem {
namespace {

// The single index, counted from the start; nothing where it is computed, several, absent or out of
// range.
std::optional<std::int64_t> single_index(const Graph& graph, ValueId indices, std::int64_t extent) {
  if (!graph.is_constant(indices) || graph.type(indices).elements() != 1) return std::nullopt;
  std::int64_t index = graph.value(indices).constant->integers()[0];
  if (index == absent_id_of(graph.type(indices).dtype)) return std::nullopt;
  if (index < 0) index += extent;
  if (index < 0 || index >= extent) return std::nullopt;
  return index;
}

Attributes slice_at(const Shape& shape, std::size_t axis, std::int64_t index) {
  Ints starts(shape.size(), 0), sizes(shape), steps(shape.size(), 1);
  starts[axis] = index;
  sizes[axis] = 1;
  return {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}, {"steps", std::move(steps)}};
}

void try_gather(PlacedEdit& edit, NodeId id) {
  const Node node = edit.graph().node(id);
  const Shape shape = edit.graph().type(node.inputs[0]).shape;
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const auto index = single_index(edit.graph(), node.inputs[1], shape[axis]);
  if (!index) return;
  const NodeId slice = edit.add("Slice", {node.inputs[0]}, slice_at(shape, axis, *index), id);
  const Shape result = edit.graph().type(node.outputs[0]).shape;
  const NodeId reshape =
      edit.add("Reshape", {edit.graph().node(slice).outputs[0]}, {{"shape", result}}, id);
  edit.replace(node.outputs[0], edit.graph().node(reshape).outputs[0]);
}

void try_gather_gradient(PlacedEdit& edit, NodeId id) {
  const Node node = edit.graph().node(id);
  const Shape shape = edit.graph().type(node.outputs[0]).shape;
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const auto index = single_index(edit.graph(), node.inputs[1], shape[axis]);
  if (!index) return;
  Attributes attributes = slice_at(shape, axis, *index);
  const NodeId reshape =
      edit.add("Reshape", {node.inputs[0]}, {{"shape", attributes.integers("sizes")}}, id);
  attributes.set("shape", shape);
  const NodeId gradient =
      edit.add("SliceGrad", {edit.graph().node(reshape).outputs[0]}, std::move(attributes), id);
  edit.replace(node.outputs[0], edit.graph().node(gradient).outputs[0]);
}

}  // namespace

PlacedGraph constant_gathers(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  for (const NodeId id : edit.nodes()) {
    const Role role = edit.graph().node(id).op->role;
    if (role == Role::lookup) try_gather(edit, id);
    if (role == Role::lookup_gradient) try_gather_gradient(edit, id);
  }
  return edit.finish();
}

}  // namespace tandem
