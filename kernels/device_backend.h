// How other code reaches the devices that a family has on this machine.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/device/device_family.h"
#include "engine/ranks/rank_group.h"

namespace tandem {

/// An accelerator of this machine.
struct FoundDevice {
  int ordinal = 0;   // 1 of "cuda:1"
  std::string name;  // its model's; "" if unknown
  std::size_t memory_bytes = 0, free_bytes = 0;
  int major = 0, minor = 0;  // the version that DeviceFamily::version names
  std::string problem;       // why this build cannot use it; "" if it can
};

/// A library that is opened at run time.
struct FoundLibrary {
  std::string name;     // "cuDNN"
  std::string needed;   // "9.19": the version that this build's headers have
  std::string version;  // the version that was found; "" if none was
  std::string path;
  std::string problem;                        // why it cannot be used; "" if it can
  std::string fix;                            // what to install or set
  std::vector<std::string> passed_over = {};  // files before it that were not used, with the reason
};

struct DeviceReport {
  std::string toolkit;  // "13.0" that this build was made with; "" in a build without the family
  std::string driver;   // the newest version that the driver knows, "13.0"; "" if there is none
  std::string problem;  // why no device can be used; "" if one can
  std::string fix;
  std::vector<FoundDevice> devices;
  std::vector<FoundLibrary> libraries;
};

/// The device to open.
struct DeviceRequest {
  std::string name;                              // the device's
  int ordinal = 0;                               // 1 of "cuda:1"
  std::optional<std::size_t> memory_bytes = {};  // limit
  std::optional<double> bytes_per_second = {};   // the link's, if the family has `has_set_link`
  std::optional<double> latency_seconds = {};    // the same
  bool allow_tf32 = false;                       // float32 products in 10 bits of mantissa
  std::shared_ptr<LaneMonitor> monitor = {};     // shared with the other devices of the run
  std::shared_ptr<RankGroup> ranks = std::make_shared<RankGroup>();  // the device joins it
};

struct DeviceBackend {
  const DeviceFamily* family = nullptr;  // set by `device_backends`
  /// Finds devices, without `free_bytes`: touches no device. Never throws. Empty if the family
  /// needs no hardware.
  std::function<DeviceReport()> look = {};
  /// The whole report for `tandem doctor`, which may use memory of each device. Never throws. Empty
  /// if there is nothing to report.
  std::function<DeviceReport()> describe = {};
  /// Memory of a device that `look` does not list.
  std::size_t memory_bytes = 0;
  /// Memory, streams and events may outlive the device. Throws Error that gives the reason and how
  /// to fix it.
  std::function<std::unique_ptr<Device>(const DeviceRequest&)> open = {};
};

/// One for each family of device_families.inl, in its order.
std::vector<DeviceBackend> device_backends();

}  // namespace tandem
