// `policy diff`: what moves between two policies, and what that does to memory, traffic and time.
#pragma once

#include <string>

#include "placement/report/planned_step.h"

namespace tandem {

struct PlannedPolicy {
  const ResolvedPolicy& resolved;
  const PlannedStep& step;
};

struct PolicyDifference {
  bool differs = false;  // some attribute of an operator or a parameter
  std::string text, json;
};
/// Modules and siblings whose parts all move alike are one line of the text; `json` has these
/// groups, and every operator and parameter.
PolicyDifference difference(const PlannedPolicy& a, const PlannedPolicy& b);

}  // namespace tandem
