// How the operands of a GroupedUpdate are ordered: `count` groups of one update's tensors, then its
// scalars.
#pragma once

#include <string_view>
#include <vector>

#include "engine/operators/operator.h"

namespace tandem {

/// Of one update with the name `op` ("SgdUpdate" or "AdamUpdate"). Group i has the inputs
/// [i * inputs, (i + 1) * inputs) and the outputs [i * outputs, (i + 1) * outputs) of the node.
struct UpdateGroup {
  std::size_t inputs = 0;   // master, grad, states: 3 (SgdUpdate, the buffer may be absent) or 4
  std::size_t outputs = 0;  // new_master, new states: 2 or 3
};
UpdateGroup update_group(std::string_view op);

/// Which output overwrites which input, for all groups; the static list of the operator is empty.
std::vector<Alias> grouped_update_aliases(const Node& node);

}  // namespace tandem
