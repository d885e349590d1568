// Implements saved_values.h; readers are those at the start of an edit.
#include "engine/lower/saved_values.h"

#include <algorithm>

namespace tandem {
namespace {

bool is_use(PlacedEdit& edit, NodeId reader, int device) {
  const Node& node = edit.graph().node(reader);
  return node.phase == Phase::backward && edit.device(reader) == device &&
         node.op->role != Role::transfer;
}

void collect_uses(PlacedEdit& edit, ValueId value, int device, std::vector<SavedUse>& uses) {
  for (NodeId reader : edit.readers(value)) {
    if (is_use(edit, reader, device)) {
      uses.push_back({reader, value});
      continue;
    }
    const Node& node = edit.graph().node(reader);
    if (!is_view(node) || node.phase != Phase::forward || edit.device(reader) != device) continue;
    for (ValueId output : node.outputs) collect_uses(edit, output, device, uses);
  }
}

}  // namespace

std::vector<SavedUse> saved_uses(PlacedEdit& edit, ValueId value, int device) {
  std::vector<SavedUse> uses;
  collect_uses(edit, value, device, uses);
  return uses;
}

bool is_saved(PlacedEdit& edit, ValueId value, int device) {
  const std::vector<NodeId>& readers = edit.readers(value);
  return std::any_of(readers.begin(), readers.end(),
                     [&](NodeId reader) { return is_use(edit, reader, device); });
}

std::vector<ValueId> view_roots(PlacedEdit& edit) {
  const Graph& graph = edit.graph();
  std::vector<ValueId> roots;
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    roots.push_back(ValueId{static_cast<std::int32_t>(v)});
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const ValueId from = is_view(node) ? node.inputs[0] : ValueId{};
    if (!from || graph.value(from).kind != ValueKind::computed ||
        edit.device(graph.value(from).producer) !=
            edit.device(NodeId{static_cast<std::int32_t>(n)}))
      continue;
    for (ValueId output : node.outputs) roots[output.index] = roots[from.index];
  }
  return roots;
}

bool gradient_compares(const Node& node) {
  return node.op->gradient_compares != nullptr && node.op->gradient_compares(node.attributes);
}

}  // namespace tandem
