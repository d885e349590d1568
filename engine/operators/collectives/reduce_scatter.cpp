// y = of n equal parts of x along axis 0 the one that has the rank's number, added up over all n
// ranks. `prompt`: what is computed behind it waits for it, a bucket of others later, so that the
// memory of x is free for that (engine/plan/reductions_in_turn.cpp).
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_reduce_scatter(const NodeView& node) {
  const std::int64_t ranks = require_equal_parts(node);
  require_reduction(node);
  TensorType type = node.input(0);
  type.shape[0] /= ranks;
  return {type};
}

Gradients reduce_scatter_gradient(GradientContext& c) {
  require_sum_for_gradient(c);
  return {c.g.add_node(all_gather_name, {c.dy[0]}, same_ranks(c))};
}

}  // namespace

Operator reduce_scatter() {
  return {.name = reduce_scatter_name,
          .role = Role::collective,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {ranks_attribute(), reduction_attribute(), {"prompt", std::int64_t{0}}},
          .infer = infer_reduce_scatter,
          .gradient = reduce_scatter_gradient,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
