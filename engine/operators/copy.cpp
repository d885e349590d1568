// Copies elements into another layout; made by lowering. Transfer copies to another device.
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_copy(const NodeView& node) { return {node.input(0)}; }

}  // namespace

Operator copy() {
  return {.name = "Copy",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .infer = infer_copy,
          .not_differentiable = "made by lowering, after the gradient",
          .engine_only = true,
          .takes_float8 = true};
}

}  // namespace tandem::operators
