// How the operands of updates are ordered; in a GroupedUpdate, `count` groups of one update's
// tensors, then its scalars.
#pragma once

#include <string_view>
#include <vector>

#include "engine/operators/update_kind.h"

namespace tandem {

/// An optimizer's step for one parameter, which may be grouped and may write a weight.
bool is_optimizer_update(const Node& node);
inline constexpr std::size_t update_scalars = 4;  // lr, step, scale, skip

/// The operands of one update of a kind that makes a `weight` or none. Group i has the inputs [i *
/// inputs, (i + 1) * inputs) and the outputs [i * outputs, (i + 1) * outputs) of the node.
struct UpdateGroup {
  std::size_t tensors = 0;  // master, grad, states (which may be absent)
  std::size_t results = 0;  // new_master, new states
  bool weight = false;
  std::size_t inputs = 0;   // tensors, and the weight to overwrite, which may be absent
  std::size_t outputs = 0;  // results, and the new weight
};
UpdateGroup update_group(const UpdateKind& kind, bool weight);
/// The group of a node that is one update or a GroupedUpdate.
UpdateGroup update_group(const Node& node);
/// The input that is the node's first scalar.
std::size_t first_scalar(const Node& node);
/// The input that the weight of a single update overwrites; the last one.
inline std::size_t old_weight(const Node& node) { return first_scalar(node) + update_scalars; }

/// Which output overwrites which input in this node: those of the operator's list, of a group or of
/// a RowsUpdate, whose operands are both there.
std::vector<Alias> aliases_of(const Node& node);

}  // namespace tandem
