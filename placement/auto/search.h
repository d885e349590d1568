// The search of automatic placement: from given starts to choices that no single move improves.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "placement/auto/rules.h"

namespace tandem {

/// What a placement costs; smaller is better, the first difference counts.
struct AutoScore {
  bool possible = true;  // kernels for everything, a valid policy
  double overflow = 0;   // bytes beyond the limits of all devices
  double seconds = 0;    // a step
  double traffic = 0;    // bytes between devices a step
};
bool better(const AutoScore& a, const AutoScore& b);

using AutoChoices = std::vector<AutoChoice>;  // one per group

struct AutoProblem {
  std::vector<AutoChoices> options;  // per group
  /// Nothing once no more may be tried; equal choices always give equal scores.
  std::function<std::optional<AutoScore>(const AutoChoices&)> score;
};

struct AutoResult {
  AutoChoices choices;
  AutoScore score;
  bool finished = false;  // no move improves it
};

/// Moves: one group, neighbours together, all groups from one on or up to one, two groups swapped.
/// Deterministic. `starts`: at least one.
AutoResult search_placement(const AutoProblem& problem, const std::vector<AutoChoices>& starts);

}  // namespace tandem
