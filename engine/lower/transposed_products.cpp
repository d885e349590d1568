// (a b)^T = b^T a^T: a transposed product becomes a product of transposed views, so that a weight
// gradient comes out in the layout of its weight.
#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

bool swaps_last_two(const Node& node) {
  if (node.op->role != Role::transpose) return false;
  const Ints& perm = node.attributes.integers("perm");
  const std::size_t rank = perm.size();
  if (rank < 2) return false;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  return perm[rank - 2] == static_cast<std::int64_t>(rank - 1) &&
         perm[rank - 1] == static_cast<std::int64_t>(rank - 2);
}

ValueId transposed(PlacedEdit& edit, ValueId x, NodeId like) {
  const NodeId producer = edit.graph().value(x).producer;
  if (producer && swaps_last_two(edit.graph().node(producer))) {
    return edit.graph().node(producer).inputs[0];
  }
  Ints perm(edit.graph().type(x).rank());
  for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const NodeId node = edit.add("Transpose", {x}, {{"perm", std::move(perm)}}, like);
  return edit.graph().node(node).outputs[0];
}

}  // namespace

PlacedGraph transposed_products(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  for (const NodeId id : edit.nodes()) {
    const Node product = edit.graph().node(id);
    if (product.op->role != Role::product) continue;
    const NodeId reader = edit.only_reader(product.outputs[0]);
    if (!reader || !swaps_last_two(edit.graph().node(reader))) continue;
    const ValueId a = product.inputs[0], b = product.inputs[1];
    if (edit.graph().type(a).rank() < 2 || edit.graph().type(b).rank() < 2) continue;
    const ValueId left = transposed(edit, b, id), right = transposed(edit, a, id);
    const NodeId swapped = edit.add("MatMul", {left, right}, {}, id);
    edit.replace(edit.graph().node(reader).outputs[0], edit.graph().node(swapped).outputs[0]);
  }
  return edit.finish();
}

}  // namespace tandem
