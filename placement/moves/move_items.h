// Moves items of a model in the text of a policy by the smallest change of its rules.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "placement/match.h"

namespace tandem {

struct ItemMove {
  std::vector<std::string> at;  // selectors of the items: "layer1.**", "fc:weight"
  /// {"on", "cpu"}, {"acts", "offload"}; no value: as the other rules say.
  std::vector<std::pair<std::string, std::optional<std::string>>> set;
};

/// The model that the policy is for; `items` are those of `graph`.
struct MovedIn {
  const Graph& graph;
  const PolicyItems& items;
  std::string default_device;  // where what no rule places runs
  std::string kept;            // a policy's text: its rules stay where they only repeat others
};

/// The text after the move. Rules say the same about everything else. A rule with this selector is
/// changed, or another one narrowed; else a line is added, or the selector of the last line
/// widened. Rules without comment and `why` that decide nothing any more are removed. Throws
/// Error{usage} for unknown keys and for text that cannot be edited.
std::string move_items(const std::string& text, const std::string& path, const ItemMove& move,
                       const MovedIn& model);

/// The text with a rule, given as `{ at = "**", state = "cpu" }`, that decides all that it matches:
/// in the last line with this selector where that is enough, else on a line of its own.
std::string add_rule(const std::string& text, const std::string& path, const std::string& rule,
                     const MovedIn& model);

}  // namespace tandem
