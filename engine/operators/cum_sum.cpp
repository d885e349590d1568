// y[i] = the sum of x[j] over j <= i along an axis; exclusive: over j < i; reverse: over j >= i
// (exclusive: j > i).
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_cum_sum(const NodeView& node) {
  require_number(node, 0);
  checked_axis(node, node.input(0).rank());
  return {node.input(0)};
}

// dx[j] = the sum of dy[i] over the i that x[j] went into: the sum from the other end.
Gradients cum_sum_gradient(GradientContext& c) {
  Attributes attributes = c.node.attributes;
  attributes.set("reverse", std::int64_t{attributes.flag("reverse") ? 0 : 1});
  return {c.g.add_node("CumSum", {c.dy[0]}, std::move(attributes))};
}

}  // namespace

Operator cum_sum() {
  return {.name = "CumSum",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"axis", std::int64_t{0}, true},
                         {"exclusive", std::int64_t{0}},
                         {"reverse", std::int64_t{0}}},
          .infer = infer_cum_sum,
          .gradient = cum_sum_gradient,
          .precision = Precision::float32,  // long sums
          .drops_elements = true};          // exclusive: the last one
}

}  // namespace tandem::operators
