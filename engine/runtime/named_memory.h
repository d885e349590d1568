// Memory of a device for something that errors name.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/device/device.h"

namespace tandem {

struct MemoryPurpose {
  std::string path;  // the state's; "" for memory that many share
  std::string what;  // "the arena of activations, gradients and workspace"
  std::string fix;   // how the host would need less of it
};

/// `Device::allocate`; its Error{does_not_fit} says what the memory was for.
std::unique_ptr<Memory> allocate_for(const MemoryPurpose& purpose, Device& device,
                                     std::size_t bytes);

}  // namespace tandem
