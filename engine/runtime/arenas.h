// The memory that activations, gradients and workspaces share: one region per device, which all
// programs of a run use one after the other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/runtime/host_pins.h"

namespace tandem {

class Arenas {
 public:
  /// The address of at least `bytes` bytes on that device. Addresses returned earlier stay valid;
  /// on a device that can reserve addresses, all are equal. Throws Error{does_not_fit}.
  void* ensure(Device& device, std::size_t bytes);
  /// Page-locks the host's region for these devices.
  void pin(Device& host, const std::vector<Device*>& devices);
  /// To be called before a step of `user`: ends another program's work in the arenas first. `drain`
  /// ends the work of this one; null: it ends by itself. True where the user changed.
  bool take(const void* user, std::function<void()> drain);
  /// Forgets a user that goes away.
  void leave(const void* user);
  /// Bytes in use on that device, all regions together.
  std::size_t bytes(const Device& device) const;

 private:
  struct Region {
    Device* device = nullptr;
    std::unique_ptr<Memory> memory;
    std::size_t bytes = 0;
    HostPins pins;
  };
  std::vector<Region> regions_;
  const void* user_ = nullptr;
  std::function<void()> drain_;
};

}  // namespace tandem
