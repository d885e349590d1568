// Keeps the upper (lower) triangle of the last two axes: j - i >= k (<= k); 0 elsewhere.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_trilu(const NodeView& node) {
  if (node.input(0).rank() < 2) {
    node.fail("rank of 'x'", "at least 2", std::to_string(node.input(0).rank()));
  }
  return {node.input(0)};
}

// dx = the same triangle of dy
Gradients trilu_gradient(GradientContext& c) {
  return {c.g.add_node("Trilu", {c.dy[0]}, c.node.attributes)};
}

}  // namespace

Operator trilu() {
  return {.name = "Trilu",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"upper", std::int64_t{1}}, {"k", std::int64_t{0}}},
          .infer = infer_trilu,
          .gradient = trilu_gradient,
          .drops_elements = true};
}

}  // namespace tandem::operators
