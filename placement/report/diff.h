// `policy diff`: what moves between two policies, and what that does to memory, traffic and time.
#pragma once

#include "include/tandem/plan.h"
#include "placement/resolve.h"

namespace tandem {

struct PlannedPolicy {
  const ResolvedPolicy& resolved;
  const api::Plan& plan;
};

/// Modules and siblings whose parts all move alike are one line of the text; `json` has these
/// groups, and every operator and parameter.
api::PolicyDiff difference(const PlannedPolicy& a, const PlannedPolicy& b);

}  // namespace tandem
