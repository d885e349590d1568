// What a copy moves, and how long the virtual clock takes it to be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::cuda {

struct CopiedBytes {
  std::uint64_t copies = 0, to_device = 0, to_host = 0;

  void add(bool to_gpu, bool from_gpu, std::size_t bytes) {
    if (to_gpu == from_gpu) return;
    ++copies;
    (to_gpu ? to_device : to_host) += bytes;
  }
};

/// Over PCI Express 5 with 16 lanes; seconds.
inline double link_seconds(std::size_t bytes) { return 10e-6 + static_cast<double>(bytes) / 50e9; }

}  // namespace tandem::cuda
