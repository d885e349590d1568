// `policy plan`: memory, copies and time of a step under a policy, and which rules to change.
#pragma once

#include <string>
#include <vector>

#include "placement/report/planned_step.h"
#include "placement/report/remedies.h"
#include "placement/resolve.h"

namespace tandem {

/// `remedies`: for a plan that does not fit.
std::string plan_text(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
                      const std::vector<Remedy>& remedies = {});
std::string plan_json(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
                      const std::vector<Remedy>& remedies = {});

}  // namespace tandem
