// Copies elements to the memory of another device; made by lowering, run by copy queues.
//
//   y = x                      x on one device, y on the device of the node
//   y = x, written into `into` where that is given: a weight that is refreshed in place
//   with `count`, an int32 scalar of the host, only its first `count` rows; the others are not
//   written
//
// `lookahead`: to a device, how many uses ahead of its own the copy may begin; to the host, how
// many later its source may be overwritten. -1: at any time. See engine/lower/order_copies.cpp.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_transfer(const NodeView& node) {
  if (node.has_input(2)) {
    require_type(node, 2, {DType::int32, {}});
    if (node.input(0).rank() == 0) node.fail("a scalar has no rows");
  }
  return {node.input(0)};
}

}  // namespace

Operator transfer() {
  return {.name = "Transfer",
          .role = Role::transfer,
          .inputs = {{"x"}, {"into", true}, {"count", true}},
          .outputs = {{"y"}},
          .attributes = {{"lookahead", std::int64_t{-1}}},
          .infer = infer_transfer,
          .not_differentiable = "made by lowering, after the gradient",
          .aliases = {{0, 1}},
          .engine_only = true,
          .takes_float8 = true};
}

}  // namespace tandem::operators
