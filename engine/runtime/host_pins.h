// Host memory that copies of a plan read or write, page-locked for the devices at the other end.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/plan/plan.h"

namespace tandem {

/// The locked pages of one piece of memory; declare it after the member that owns the memory.
class HostPins {
 public:
  /// Pins for each of the devices. A range that has grown is pinned anew: no copy may run then.
  void pin(const std::vector<Device*>& devices, void* address, std::size_t bytes);
  bool covers(const std::vector<Device*>& devices, std::size_t bytes) const;

 private:
  struct Pin {
    Device* device = nullptr;
    std::size_t bytes = 0;
    std::unique_ptr<PinnedRange> range;
  };
  std::vector<Pin> pins_;
};

/// Per buffer of the plan: whether it lies on the host and a copy reads or writes it.
std::vector<char> copied_host_buffers(const Plan& plan);

}  // namespace tandem
