// How the operands of a GroupedUpdate are ordered: `count` groups of one update's tensors, then its
// scalars.
#pragma once

#include <string_view>
#include <vector>

#include "engine/operators/operator.h"

namespace tandem {

/// Of one update with the name `op` ("SgdUpdate" or "AdamUpdate") that makes a `weight` or none.
/// Group i has the inputs [i * inputs, (i + 1) * inputs) and the outputs [i * outputs, (i + 1) *
/// outputs) of the node.
struct UpdateGroup {
  std::size_t tensors = 0;  // master, grad, states: 3 (SgdUpdate, the buffer may be absent) or 4
  std::size_t results = 0;  // new_master, new states: 2 or 3
  bool weight = false;
  std::size_t inputs = 0;   // tensors, and the weight to overwrite, which may be absent
  std::size_t outputs = 0;  // results, and the new weight
};
UpdateGroup update_group(std::string_view op, bool weight);
/// Of a node of SgdUpdate, AdamUpdate or GroupedUpdate.
UpdateGroup update_group(const Node& node);
/// The node's first scalar: lr, then step, scale, skip.
std::size_t first_scalar(const Node& node);

/// Which output overwrites which input in this node: those of the operator's list, or of a group,
/// whose operands are both there.
std::vector<Alias> aliases_of(const Node& node);

}  // namespace tandem
