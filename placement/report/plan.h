// `policy plan`: memory, copies and time of a step under a policy, and which rules to change.
#pragma once

#include <string>

#include "placement/report/planned_step.h"
#include "placement/resolve.h"

namespace tandem {

std::string plan_text(const Policy& policy, const ResolvedPolicy& resolved,
                      const PlannedStep& step);
std::string plan_json(const Policy& policy, const ResolvedPolicy& resolved,
                      const PlannedStep& step);

}  // namespace tandem
