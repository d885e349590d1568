// A sum of SliceGrads that together cover the tensor is a Concat: nothing is zero-filled or added.
#include <algorithm>

#include "engine/lower/placed_graph.h"
#include "engine/operators/scalar_functions.h"

namespace tandem {
namespace {

struct Piece {
  ValueId dy;
  std::int64_t start = 0, size = 0;
};

// Collects the leaves of a tree of Adds, each read only there; false where one is no SliceGrad.
bool collect(PlacedEdit& edit, ValueId value, std::vector<NodeId>& leaves) {
  const NodeId producer = edit.graph().value(value).producer;
  if (!producer) return false;
  const Node& node = edit.graph().node(producer);
  if (node.op->name == "SliceGrad") {
    leaves.push_back(producer);
    return true;
  }
  if (node.op->scalar != ScalarFunction::add) return false;
  for (ValueId input : node.inputs) {
    if (!(edit.graph().type(input) == edit.graph().type(value))) return false;
    if (!edit.only_reader(input) || !collect(edit, input, leaves)) return false;
  }
  return true;
}

// The single axis along which the leaves tile `shape`, with the pieces in order; else -1.
int tiled_axis(PlacedEdit& edit, const std::vector<NodeId>& leaves, const Shape& shape,
               std::vector<Piece>& pieces) {
  int axis = -1;
  for (NodeId leaf : leaves) {
    const Node& node = edit.graph().node(leaf);
    const Ints& starts = node.attributes.integers("starts");
    const Ints& sizes = node.attributes.integers("sizes");
    const Ints& steps = node.attributes.integers("steps");
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (steps[i] != 1 && sizes[i] > 1) return -1;
      if (sizes[i] == shape[i]) continue;
      if (axis >= 0 && axis != static_cast<int>(i)) return -1;
      axis = static_cast<int>(i);
    }
    if (axis < 0) return -1;
    pieces.push_back({node.inputs[0], starts[axis], sizes[axis]});
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.start < b.start; });
  std::int64_t end = 0;
  for (const Piece& piece : pieces) {
    if (piece.start != end) return -1;
    end += piece.size;
  }
  return end == shape[axis] ? axis : -1;
}

}  // namespace

PlacedGraph slice_gradients(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  // From the last node backwards, so that the largest tree of Adds is met first.
  for (std::size_t n = edit.graph().nodes.size(); n-- > 0;) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const Node node = edit.graph().node(id);
    if (node.op->scalar != ScalarFunction::add) continue;
    std::vector<NodeId> leaves;
    std::vector<Piece> pieces;
    if (!collect(edit, node.outputs[0], leaves)) continue;
    const int axis = tiled_axis(edit, leaves, edit.graph().type(node.outputs[0]).shape, pieces);
    if (axis < 0) continue;
    std::vector<ValueId> inputs;
    for (const Piece& piece : pieces) inputs.push_back(piece.dy);
    const NodeId concat =
        edit.add("Concat", std::move(inputs), {{"axis", std::int64_t{axis}}}, id, leaves);
    edit.replace(node.outputs[0], edit.graph().node(concat).outputs[0]);
  }
  return edit.finish();
}

}  // namespace tandem
