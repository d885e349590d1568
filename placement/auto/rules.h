// Writes the choices of automatic placement as few rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/auto/groups.h"

namespace tandem {

/// Devices of a group, as indices into a list of names; param and state are -1 where a group has no
/// parameters.
struct AutoChoice {
  int run = 0, param = 0, state = 0;
  bool operator==(const AutoChoice&) const = default;
};

struct AutoRule {
  std::string at;
  std::optional<int> on, run, param, state;
};

/// General rules first, exceptions after them. `choices`: one per group; `builtin`: the device of
/// what no rule places.
std::vector<AutoRule> auto_rules(const AutoGroups& groups, const std::vector<AutoChoice>& choices,
                                 int builtin);

/// { at = "**", on = "gpu0", state = "cpu" }
std::string to_toml(const AutoRule& rule, const std::vector<std::string>& devices);

}  // namespace tandem
