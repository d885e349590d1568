// The memory that activations, gradients and workspaces share: one region per device, which all
// programs of a run use one after the other.
#pragma once

#include <memory>
#include <vector>

#include "engine/runtime/device.h"

namespace tandem {

class Arenas {
 public:
  /// The address of at least `bytes` bytes on that device. Addresses given out before stay valid;
  /// on a device that can reserve, all are the same. Throws Error{does_not_fit}.
  void* ensure(Device& device, std::size_t bytes);
  /// Bytes in use on that device, all regions together.
  std::size_t bytes(const Device& device) const;

 private:
  struct Region {
    Device* device = nullptr;
    std::unique_ptr<Memory> memory;
    std::size_t bytes = 0;
  };
  std::vector<Region> regions_;
};

}  // namespace tandem
