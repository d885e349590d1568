// Splits x along axis 0 into n equal parts, of which part p goes to rank p; y = the parts that all
// ranks have for this one, in the order of the ranks.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_all_to_all(const NodeView& node) {
  require_equal_parts(node);
  return {node.input(0)};
}

// What was received goes back to its sender.
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
