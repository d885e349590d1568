// y[k] = the sum (or maximum, ...) of x[k] over all ranks, element by element; every rank gets the
// same. All operands have one type, so that several travel as one.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_all_reduce(const NodeView& node) {
  require_ranks(node);
  if (node.input_count() == 0) node.fail("no inputs", "at least 1", "0");
  require_reduction(node);
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    require_same_dtype(node, 0, i);
    types.push_back(node.input(i));
  }
  return types;
}

// The losses of the ranks are added up, so that dx of one rank is the sum of all ranks' dy.
Gradients all_reduce_gradient(GradientContext& c) {
  require_sum_for_gradient(c);
  Gradients dx(c.node.inputs.size());
  std::vector<ValueId> dy;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (c.dy[i] && c.wanted[i]) dy.push_back(c.dy[i]);
  }
  if (dy.empty()) return dx;
  const std::vector<ValueId> sums = c.g.node(all_reduce_name, dy, c.node.attributes);
  std::size_t next = 0;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (c.dy[i] && c.wanted[i]) dx[i] = sums[next++];
  }
  return dx;
}

}  // namespace

Operator all_reduce() {
  return {.name = all_reduce_name,
          .role = Role::collective,
          .inputs = {{.name = "x", .variadic = true}},
          .outputs = {{.name = "y", .variadic = true}},
          .attributes = {ranks_attribute(), reduction_attribute()},
          .infer = infer_all_reduce,
          .gradient = all_reduce_gradient,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
