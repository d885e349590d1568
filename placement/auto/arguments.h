// What `policy auto` reads from its command line: budgets, and the devices that it may place on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "placement/report/device_profile.h"

namespace tandem {

using Budgets = std::map<std::string, std::uint64_t>;  // bytes by device name

/// Reads texts such as "gpu=20GiB", one a device. Throws Error{usage}.
Budgets read_budgets(const std::vector<std::string>& texts);
/// Throws Error{usage} with the nearest name where a budget is for neither a known name nor a
/// numbered device.
void check_budget_names(const Budgets& budgets, const std::vector<std::string>& known);

/// A policy file that only declares these devices, given as in `--device`.
std::string new_policy(const std::vector<std::string>& devices);
/// "cpu", then those that the policy's text, `--device`, budgets or a profile name. Throws
/// Error{usage} where there is only one device, and only one rank.
std::vector<std::string> device_names(const std::vector<std::string>& devices,
                                      const std::string& text, const Budgets& budgets,
                                      const DeviceProfiles& profiles, int ranks);

}  // namespace tandem
