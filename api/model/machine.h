// The accelerators of this machine, looked for only when a policy uses one: other runs must not
// start a driver.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/device_backend.h"

namespace tandem::api {

/// Copies share what they found: each family is asked once, by any thread.
class Machine {
 public:
  explicit Machine(std::vector<DeviceBackend> backends = device_backends());

  /// The backend of a use such as "cuda:0", which has to have a family of this machine.
  const DeviceBackend& backend(std::string_view use) const;
  /// What there is of this use's family; empty if it needs no hardware.
  const DeviceReport& report(std::string_view use) const;

 private:
  struct Found {
    std::mutex mutex;
    std::map<const DeviceFamily*, DeviceReport> reports;
  };
  std::vector<DeviceBackend> backends_;
  std::shared_ptr<Found> found_;
};

}  // namespace tandem::api
