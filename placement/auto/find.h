// `policy auto`: the best placement that a search finds, and the report about it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "placement/auto/auto_case.h"

namespace tandem {

/// Everything that a run of the command finds out.
struct FoundPlacement {
  std::vector<std::string> lines;
  AutoPlan after;
  std::optional<AutoPlan> before;
  std::vector<std::pair<std::string, AutoPlan>> baselines;  // written after the file's rules
  /// For several ranks: the ways to shard that were compared, then the chosen one and its reason.
  std::vector<std::pair<std::string, AutoPlan>> shardings;
  std::string sharding, why;
  int ranks = 1;
  int plans = 0, most_plans = 0;
  bool finished = false;
  bool stopped = false;            // by the caller: it is the best that was found until then
  PolicyRules pinned_by;           // rules that place everything: nothing is left to search
  std::vector<int> lost_comments;  // their lines in the file before
  std::string times;               // where the cost model's kernel times come from
  /// The policy as it was is faster and fits: the search was short, or its groups too coarse.
  bool is_old_better() const;
  /// The policy as it was fits, and none that was found is faster by more than rounding.
  bool is_old_best() const;
};

/// `ranks`: how many train together; for more than one, what they shard is chosen for the best
/// placement. Throws Error{does_not_fit} where no placement fits, Error{runtime} "interrupted"
/// where `watch` ends the search before one was found that does.
FoundPlacement find_placement(AutoCase& of, int ranks = 1, const AutoWatch& watch = {});

/// `file`: where the list is written; `changed`: whether it differs from the list before.
std::string found_text(const FoundPlacement& found, const std::string& file, bool changed);
std::string found_json(const FoundPlacement& found, const std::string& file, bool changed);

}  // namespace tandem
