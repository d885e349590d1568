// What `policy auto` reads from its command line: budgets, and the devices that it may place on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "placement/report/device_profile.h"

namespace tandem {

using Budgets = std::map<std::string, std::uint64_t>;  // bytes by device name

/// Of "gpu=20GiB", one a device. Throws Error{usage}.
Budgets read_budgets(const std::vector<std::string>& texts);
/// Throws Error{usage} with the nearest name where a budget is for none of these, nor for a
/// numbered device.
void check_budget_names(const Budgets& budgets, const std::vector<std::string>& known);

/// A policy file with nothing but these devices, as `--device` writes them.
std::string new_policy(const std::vector<std::string>& devices);
/// "cpu", then those that the policy's text, `--device`, budgets or a profile name. Throws
/// Error{usage} where there is no second one and no several ranks either.
std::vector<std::string> device_names(const std::vector<std::string>& devices,
                                      const std::string& text, const Budgets& budgets,
                                      const DeviceProfiles& profiles, int ranks);

}  // namespace tandem
