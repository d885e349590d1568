// `policy check`: what a policy decides.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "include/tandem/policy.h"
#include "placement/resolve.h"

namespace tandem {

/// What each rule matches and decides. The text has warnings, notes, the rules, and how much each
/// device has.
api::PolicyCheck check_data(const Policy& policy, const ResolvedPolicy& resolved);
/// "gpu 5 operators, 4 parameters | cpu 4 operators, 4 parameters".
std::string devices_text(const ResolvedPolicy& resolved);
/// From names of devices with their counts, the cpu first.
std::string devices_text(const std::vector<std::pair<std::string, ItemCounts>>& devices);

}  // namespace tandem
