// y[k] = x[k] of all ranks, one after the other along axis 0, in the order of the ranks. All
// operands have one type, so that several travel as one.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_all_gather(const NodeView& node) {
  const std::int64_t ranks = require_ranks(node);
  if (node.input_count() == 0) node.fail("no inputs", "at least 1", "0");
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    require_same_dtype(node, 0, i);
    TensorType& type = types.emplace_back(node.input(i));
    if (type.rank() == 0) node.fail("a scalar has no rows to gather");
    type.shape[0] *= ranks;
  }
  return types;
}

// The rank's own shard of the sum of all ranks' dy.
Gradients all_gather_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (c.dy[i] && c.wanted[i]) dx[i] = c.g.add_node(reduce_scatter_name, {c.dy[i]}, same_ranks(c));
  }
  return dx;
}

}  // namespace

Operator all_gather() {
  return {.name = all_gather_name,
          .role = Role::collective,
          .inputs = {{.name = "x", .variadic = true}},
          .outputs = {{.name = "y", .variadic = true}},
          .attributes = {ranks_attribute()},
          .infer = infer_all_gather,
          .gradient = all_gather_gradient,
          .engine_only = true};
}

}  // namespace tandem::operators
