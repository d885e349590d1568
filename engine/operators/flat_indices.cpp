// flat[p...] = the sum over axes a of p[a] position_strides[a], plus the sum over k of
// indices[p..., k] strides[k]: where in memory a tuple of indices points to, as Gather along one
// axis wants it. Index k counts from the end of extents[k] where it is negative; out of range it
// writes the error word and is clamped. The result is absent_id (rows.h) where one of the tuple is.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_flat_indices(const NodeView& node) {
  require_index(node, 0);
  Shape shape = node.input(0).shape;
  if (shape.empty()) node.fail("rank of 'indices'", "at least 1", "0");
  const auto count = static_cast<std::size_t>(shape.back());
  shape.pop_back();
  const Ints& extents = checked_per_axis(node, "extents", count);
  checked_per_axis(node, "strides", count);
  checked_per_axis(node, "position_strides", shape.size());
  for (std::int64_t extent : extents) {
    if (extent < 1 && element_count(shape) > 0) {
      node.fail("indices into an axis without elements", "extents of 1 or more",
                to_string(extents));
    }
  }
  return {{DType::int64, std::move(shape)}};
}

}  // namespace

Operator flat_indices() {
  return {.name = "FlatIndices",
          .inputs = {{"indices"}},
          .outputs = {{"flat"}},
          .attributes = {{"extents", Ints(), true},
                         {"strides", Ints(), true},
                         {"position_strides", Ints(), true}},
          .infer = infer_flat_indices,
          .not_differentiable = "its operand and its result are integers"};
}

}  // namespace tandem::operators
