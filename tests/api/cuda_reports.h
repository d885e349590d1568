// Made-up machines for tests that name GPUs.
#pragma once

#include <utility>

#include "api/model/machine.h"

namespace tandem::api {

/// This machine, where GPUs are found and opened by these functions; without `open` as they are.
inline Machine machine_with_gpus(std::function<DeviceReport()> look,
                                 decltype(DeviceBackend::open) open = {}) {
  std::vector<DeviceBackend> backends = device_backends();
  for (DeviceBackend& backend : backends) {
    if (backend.family != family_of_use("cuda:0")) continue;
    backend.look = std::move(look);
    if (open) backend.open = std::move(open);
  }
  return Machine(std::move(backends));
}

inline DeviceReport without_driver() {
  DeviceReport report;
  report.toolkit = "13.0";
  report.problem = "this machine has no NVIDIA driver";
  report.fix = "install one";
  return report;
}

}  // namespace tandem::api
