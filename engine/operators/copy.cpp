// The same elements in another layout; made by lowering. Transfer goes to another device.
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) { return {node.input(0)}; }

}  // namespace

Operator copy() {
  Operator op;
  op.name = "Copy";
  op.inputs = {{"x"}};
  op.outputs = {{"y"}};
  op.infer = infer;
  op.not_differentiable = "made by lowering, after the gradient";
  op.engine_only = true;
  return op;
}

}  // namespace tandem::operators
