// The same elements in the memory of another device; made by lowering, run by copy queues.
//
//   y = x                      x on one device, y on the device of the node
//   y = x, written into `into` where that is given: a weight that is refreshed in place
//
// `lookahead`: to a device, how many uses ahead of its own the copy may begin; to the host, how
// many later its source may be overwritten. -1: at any time. See engine/lower/order_copies.cpp.
#include "engine/operators/operators.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) { return {node.input(0)}; }

}  // namespace

Operator transfer() {
  Operator op;
  op.name = "Transfer";
  op.inputs = {{"x"}, {"into", true}};
  op.outputs = {{"y"}};
  op.attributes = {{"lookahead", std::int64_t{-1}}};
  op.infer = infer;
  op.aliases = {{0, 1}};
  op.not_differentiable = "made by lowering, after the gradient";
  op.engine_only = true;
  return op;
}

}  // namespace tandem::operators
