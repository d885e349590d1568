// y[..., c]: the numbers of a packed matrix (packing.h), in float32, or float64 where the scales
// are.
#include "engine/operators/packed/packing.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_unpack(const NodeView& node) {
  const Packing packing = checked_packing(node, 0);
  Shape shape = node.input(0).shape;
  shape.back() = packing.columns;
  const bool is_double = node.has_input(1) && node.input(1).dtype == DType::float64;
  return {{is_double ? DType::float64 : DType::float32, std::move(shape)}};
}

}  // namespace

Operator unpack() {
  return {.name = "Unpack",
          .inputs = {{"data"}, {"scales", true, false, true}, {"zero_points", true, false, true}},
          .outputs = {{"y"}},
          .attributes = packing_attributes(),
          .infer = infer_unpack,
          .not_differentiable = "packed weights do not train",
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
