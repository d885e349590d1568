// `policy check`: what a policy decides.
#pragma once

#include <string>

#include "placement/resolve.h"

namespace tandem {

/// Warnings, notes, each rule with what it decides, how much each device has.
std::string check_text(const Policy& policy, const ResolvedPolicy& resolved);
std::string check_json(const Policy& policy, const ResolvedPolicy& resolved);
/// "gpu 5 operators, 4 parameters | cpu 4 operators, 4 parameters".
std::string devices_text(const ResolvedPolicy& resolved);

}  // namespace tandem
