// y = x of all ranks, one after the other along axis 0, in the order of the ranks.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_all_gather(const NodeView& node) {
  const std::int64_t ranks = require_ranks(node);
  TensorType type = node.input(0);
  if (type.rank() == 0) node.fail("a scalar has no rows to gather");
  type.shape[0] *= ranks;
  return {type};
}

// The rank's own part of all ranks' dy, added up.
Gradients all_gather_gradient(GradientContext& c) {
  return {c.g.add_node(reduce_scatter_name, {c.dy[0]}, same_ranks(c))};
}

}  // namespace

Operator all_gather() {
  return {.name = all_gather_name,
          .role = Role::collective,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {ranks_attribute()},
          .infer = infer_all_gather,
          .gradient = all_gather_gradient,
          .engine_only = true};
}

}  // namespace tandem::operators
