// What the rules of a policy ask for, item by item, before anything is known of kernels and data.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/match.h"
#include "placement/policy.h"

namespace tandem {

/// Attributes of operators, then those of parameters and buffers.
inline constexpr std::array<std::string_view, 3> operator_keys{"run", "acts", "lookahead"};
inline constexpr std::array<std::string_view, 6> parameter_keys{"param", "state", "lookahead",
                                                                "ship",  "cache", "shard"};

/// The value that a rule gives an attribute, as a rule writes it; nothing where it leaves it open.
std::optional<std::string> asked_value(const PolicyRule& rule, std::string_view key);

/// One attribute of one item.
struct AskedCell {
  std::string value;  // with defaults: "keep" for acts that no rule sets
  int rule = -1;      // index into Policy::rules; -1: a default
};

struct AskedValues {
  /// [attribute][item], the attributes as above.
  std::array<std::vector<AskedCell>, operator_keys.size()> operators;
  std::array<std::vector<AskedCell>, parameter_keys.size()> parameters;
  std::vector<RuleMatches> matches;  // per rule
};

/// `default_device`: where what no rule places runs.
AskedValues asked_values(const Policy& policy, const Graph& graph, const PolicyItems& items,
                         const std::string& default_device);

}  // namespace tandem
