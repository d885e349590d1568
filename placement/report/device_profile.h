// Device profiles in files: what the cost model assumes of a device, so that a policy can be made
// without it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/simulate.h"
#include "placement/device_binding.h"

namespace tandem {

struct StoredProfile {
  DeviceProfile profile;
  std::optional<std::uint64_t> memory_bytes;  // what the device has
};
using DeviceProfiles = std::map<std::string, StoredProfile>;  // by the name that rules use

/// Throws one Error{usage} with everything that is wrong in the file (docs/placement.md).
DeviceProfiles read_device_profiles(const std::string& path);
/// The file's text: JSON, the same for the same profiles.
std::string device_profiles_json(const DeviceProfiles& profiles);

/// Emulated devices in place of those that a profile describes, for plans only.
void add_stand_ins(const DeviceProfiles& profiles, std::vector<DeviceBinding>& stand_ins);

}  // namespace tandem
