// y = of n equal parts along axis 0 of every rank's x the one that has this rank's number, in the
// order of the ranks: part p of x goes to rank p.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_all_to_all(const NodeView& node) {
  require_equal_parts(node);
  return {node.input(0)};
}

// What has come goes back to where it was.
Gradients all_to_all_gradient(GradientContext& c) {
  return {c.g.add_node(all_to_all_name, {c.dy[0]}, same_ranks(c))};
}

}  // namespace

Operator all_to_all() {
  return {.name = all_to_all_name,
          .role = Role::collective,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {ranks_attribute()},
          .infer = infer_all_to_all,
          .gradient = all_to_all_gradient,
          .engine_only = true};
}

}  // namespace tandem::operators
