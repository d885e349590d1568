// y[k] = this rank's shard of the sum of x[k] over all n ranks: axis 0 is split into n shards of
// ceil(rows / n); what x[k] does not fill is zeros. All operands have one type, so that several
// travel as one. `prompt`: what is computed one bucket of other sums later waits for it, so that
// the memory of x is free for that (engine/plan/reductions_in_turn.cpp).
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_reduce_scatter(const NodeView& node) {
  const std::int64_t ranks = require_ranks(node);
  if (node.input_count() == 0) node.fail("no inputs", "at least 1", "0");
  require_reduction(node);
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    require_same_dtype(node, 0, i);
    TensorType& type = types.emplace_back(node.input(i));
    if (type.rank() == 0) node.fail("a scalar has no rows to scatter");
    type.shape[0] = (type.shape[0] + ranks - 1) / ranks;
  }
  return types;
}

Gradients reduce_scatter_gradient(GradientContext& c) {
  require_sum_for_gradient(c);
  Gradients dx(c.node.inputs.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (!c.dy[i] || !c.wanted[i]) continue;
    dx[i] = c.g.add_node(all_gather_name, {c.dy[i]}, same_ranks(c));
    const Shape& shape = c.g.shape(c.x(i));
    if (c.g.shape(dx[i]) == shape) continue;
    const Ints zeros(shape.size(), 0), ones(shape.size(), 1);
    dx[i] = c.g.add_node("Slice", {dx[i]}, {{"starts", zeros}, {"sizes", shape}, {"steps", ones}});
  }
  return dx;
}

}  // namespace

Operator reduce_scatter() {
  return {.name = reduce_scatter_name,
          .role = Role::collective,
          .inputs = {{.name = "x", .variadic = true}},
          .outputs = {{.name = "y", .variadic = true}},
          .attributes = {ranks_attribute(), reduction_attribute(), {"prompt", std::int64_t{0}}},
          .infer = infer_reduce_scatter,
          .gradient = reduce_scatter_gradient,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
