// What the emulation of a block on the host refuses where a GPU would fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tandem::cuda::detail {

/// Addresses of the shared memory of the block that the calling thread emulates; none outside.
struct SharedAddresses {
  std::uintptr_t begin = 0, end = 0;
};
inline SharedAddresses& emulated_shared() {
  thread_local SharedAddresses own;
  return own;
}

/// A block is emulated while this lives.
class EmulatedBlock {
 public:
  EmulatedBlock(const void* shared, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(shared);
    emulated_shared() = {begin, begin + bytes};
  }
  ~EmulatedBlock() { emulated_shared() = {}; }
  EmulatedBlock(const EmulatedBlock&) = delete;
  EmulatedBlock& operator=(const EmulatedBlock&) = delete;
};

/// Throws std::runtime_error, which ends the emulated kernel: an access of global memory whose
/// address lies in the block's shared memory (`st.global` faults there), or is no multiple of
/// `bytes`.
inline void check_global(const void* address, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const SharedAddresses& shared = emulated_shared();
  if (at >= shared.begin && at < shared.end)
    throw std::runtime_error("an access of global memory at an address of shared memory");
  if (at % bytes != 0) {
    throw std::runtime_error("an access of " + std::to_string(bytes) +
                             " bytes at an address that is no multiple of them");
  }
}

}  // namespace tandem::cuda::detail
