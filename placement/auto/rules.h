// Writes the choices of automatic placement as few rules.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "placement/auto/groups.h"
#include "placement/policy.h"

namespace tandem {

/// Devices of a group, as indices into a list of names; param and state are -1 where a group has no
/// parameters.
struct AutoChoice {
  int run = 0, param = 0, state = 0;
  auto operator<=>(const AutoChoice&) const = default;
};

/// General rules first, exceptions after them. `choices`: one per group, of `devices`; `builtin`:
/// the device of what no rule places.
PolicyRules auto_rules(const AutoGroups& groups, const std::vector<AutoChoice>& choices,
                       int builtin, const std::vector<std::string>& devices);

}  // namespace tandem
