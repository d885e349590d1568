#include "engine/train/sharding/split_axes.h"

#include <algorithm>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t count = 1;
  for (std::size_t i = begin; i < end; ++i) count *= shape[i];
  return count;
}

}  // namespace

std::optional<std::size_t> axis_behind_reshape(const Shape& from, const Shape& to, std::size_t axis,
                                               std::int64_t ranks) {
  const std::int64_t before = product(from, 0, axis);
  const std::int64_t behind = product(from, axis + 1, from.size());
  for (std::size_t i = 1; i < to.size(); ++i) {
    if (product(to, 0, i) != before || to[i] == 1) continue;
    const bool is_same = to[i] == from[axis] && product(to, i + 1, to.size()) == behind;
    // Whole blocks of what the axis is cut into, or of what it is merged with.
    const bool has_blocks = from[axis] % ranks == 0 && to[i] % ranks == 0;
    if (is_same || has_blocks) return i;
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::size_t> axis_behind_transpose(const Ints& perm, std::size_t axis) {
  if (perm[0] != 0) return std::nullopt;
  const auto found = std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(axis));
  return static_cast<std::size_t>(found - perm.begin());
}

std::vector<bool> uniform_values(const Graph& graph) {
  std::vector<bool> is_uniform(graph.values.size(), false);
  const auto at = [&](ValueId id) { return is_uniform[static_cast<std::size_t>(id.index)]; };
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    is_uniform[v] = graph.values[v].kind == ValueKind::constant;
  for (const State& state : graph.states) {
    if (state.kind == StateKind::parameter && !state.shard)
      is_uniform[static_cast<std::size_t>(state.initial.index)] = true;
  }
  for (const Node& node : graph.nodes) {
    if (node.op->random || node.op->role == Role::collective) continue;
    if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return !input || at(input); }))
      continue;
    for (const ValueId output : node.outputs) {
      if (output) is_uniform[static_cast<std::size_t>(output.index)] = true;
    }
  }
  return is_uniform;
}

}  // namespace tandem
