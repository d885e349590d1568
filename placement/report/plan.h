// `policy plan`: memory, copies and time of a step under a policy as one structure, and its text
// and JSON, which are written from that structure alone.
#pragma once

#include <string>
#include <vector>

#include "include/tandem/plan.h"
#include "placement/report/planned_step.h"
#include "placement/report/remedies.h"
#include "placement/resolve.h"

namespace tandem {

/// `remedies`: for a plan that does not fit. Its text and JSON are there, too.
api::Plan plan_data(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
                    const std::vector<Remedy>& remedies = {});

std::string plan_text(const api::Plan& plan);
/// docs/formats.md has its members.
std::string plan_json(const api::Plan& plan);

/// A line each, below a heading; "" for none.
std::string remedies_text(const std::vector<api::Plan::Remedy>& remedies);
std::vector<api::Plan::Remedy> remedies_data(const std::vector<Remedy>& remedies);

}  // namespace tandem
