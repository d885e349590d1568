// Hints of `policy plan`: what a rule makes slow or large, and the rule that would not.
#pragma once

#include <vector>

#include "include/tandem/plan.h"
#include "placement/report/planned_step.h"
#include "placement/resolve.h"

namespace tandem {

/// Devices that are too small first, then operators that only change a shape, parameters and states
/// far from their readers, caches that do not pay.
std::vector<api::Plan::Hint> hints_of(const Policy& policy, const ResolvedPolicy& resolved,
                                      const PlannedStep& step);

}  // namespace tandem
