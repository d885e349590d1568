// From the choices of automatic placement to few rules that say the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/auto/groups.h"

namespace tandem {

/// Devices of a group, by their place in a list of names; param and state are -1 where a group has
/// no parameters.
struct AutoChoice {
  int run = 0, param = 0, state = 0;
  bool operator==(const AutoChoice&) const = default;
};

struct AutoRule {
  std::string at;
  std::optional<int> on, run, param, state;
};

/// General rules first, exceptions after them. `choices`: one per group; `builtin`: the device
/// where no rule says anything.
std::vector<AutoRule> auto_rules(const AutoGroups& groups, const std::vector<AutoChoice>& choices,
                                 int builtin);

/// { at = "**", on = "gpu", state = "cpu" }
std::string to_toml(const AutoRule& rule, const std::vector<std::string>& devices);

}  // namespace tandem
