// new_state[k] = the shards of all ranks, one after the other in their order: part[k] has
// ceil(elements / n) of the state's elements in row-major order; the state fills the shards of the
// last ranks in part or not at all. Lowering makes it, so that a gathered weight arrives where it
// lies; several travel as one.
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_gather_states(const NodeView& node) {
  const std::int64_t ranks = require_ranks(node);
  if (node.input_count() == 0 || node.input_count() % 2 != 0)
    node.fail("not a part for each state", "an even number of inputs",
              std::to_string(node.input_count()));
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < node.input_count(); i += 2) {
    const TensorType& state = types.emplace_back(node.input(i));
    require_same_dtype(node, 0, i);
    require_same_dtype(node, 0, i + 1);
    require_shape(node, i + 1, {(state.elements() + ranks - 1) / ranks});
  }
  return types;
}

std::vector<Alias> gather_states_aliases(const Node& node) {
  std::vector<Alias> aliases;
  for (int k = 0; k < static_cast<int>(node.inputs.size()) / 2; ++k) aliases.push_back({k, 2 * k});
  return aliases;
}

}  // namespace

Operator gather_states() {
  return {.name = gather_states_name,
          .role = Role::collective,
          .inputs = {{.name = "states_and_parts", .variadic = true}},
          .outputs = {{.name = "new_state", .variadic = true}},
          .attributes = {ranks_attribute()},
          .infer = infer_gather_states,
          .not_differentiable = not_differentiable_update,
          .node_aliases = gather_states_aliases,
          .engine_only = true};
}

}  // namespace tandem::operators
