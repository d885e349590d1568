// Device profiles in files: what the cost model takes a device for, so that a policy can be made
// without the device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/simulate.h"
#include "engine/runtime/compile.h"
#include "placement/device_binding.h"

namespace tandem::api {

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

/// Runs each distinct kernel of one device alone; `profile` gains the medians, and its roofline is
/// scaled so that it takes as long as they do in all.
void measure_kernels(const CompiledProgram& program, int device, DeviceProfile& profile);

}  // namespace tandem::api
