// What the 32 lanes of a warp do together without shared memory: sums within groups of lanes, and
// which lanes hold the same number. Threads of a block are a multiple of 32.
#pragma once

#include <cstdint>

#include "kernels/shared/block/block.h"

namespace tandem::cuda {

/// Sums over groups of `width` neighbouring threads, a power of two up to 32; every thread of a
/// group gets the same sum. In each round thread i takes what thread i xor 1, 2, 4 ... has.
template <class T>
TANDEM_HOST_DEVICE void sum_lanes(const HostBlock& block, HostBlock::Private<T>& values,
                                  int width) {
  for (int apart = 1; apart < width; apart *= 2) {
    for (int thread = 0; thread < block.threads(); ++thread) {
      const int other = thread ^ apart;
      if (other < thread) continue;
      const T both = values(thread) + values(other);
      values(thread) = values(other) = both;
    }
  }
}

/// For each thread the lanes of its warp whose key is the same as its own, as bits.
TANDEM_HOST_DEVICE inline void match_lanes(const HostBlock& block,
                                           const HostBlock::Private<std::uint32_t>& keys,
                                           HostBlock::Private<std::uint32_t>& lanes) {
  for (int first = 0; first < block.threads(); first += 32) {
    for (int lane = 0; lane < 32; ++lane) {
      std::uint32_t same = 0;
      for (int other = 0; other < 32; ++other) {
        if (keys(first + other) == keys(first + lane)) same |= 1u << other;
      }
      lanes(first + lane) = same;
    }
  }
}

/// Orders what the lanes of a warp write and read, as `block.sync()` does for a block.
TANDEM_HOST_DEVICE inline void sync_lanes(const HostBlock&) {}

#if defined(__CUDACC__)
template <class T>
__device__ void sum_lanes(const GpuBlock&, GpuBlock::Private<T>& values, int width) {
  T value = values(0);
  for (int apart = 1; apart < width; apart *= 2) {
    value = value + __shfl_xor_sync(0xffffffffu, value, apart);
  }
  values(0) = value;
}

__device__ inline void match_lanes(const GpuBlock&, const GpuBlock::Private<std::uint32_t>& keys,
                                   GpuBlock::Private<std::uint32_t>& lanes) {
  lanes(0) = __match_any_sync(0xffffffffu, keys(0));
}

__device__ inline void sync_lanes(const GpuBlock&) { __syncwarp(); }
#endif

TANDEM_HOST_DEVICE inline int count_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

/// Replaces the values of a block's threads by the sums of those before them; returns the sum of
/// all. `memory` is shared and has room for two numbers a thread; a barrier begins and ends it.
template <class Block>
TANDEM_HOST_DEVICE int scan_block(const Block& block, typename Block::template Private<int>& values,
                                  int* memory) {
  const int threads = block.threads();
  block.sync();
  block.each([&](int thread) { memory[thread] = values(thread); });
  block.sync();
  int* from = memory;
  int* to = memory + threads;
  for (int apart = 1; apart < threads; apart *= 2) {
    block.each([&](int thread) {
      to[thread] = from[thread] + (thread >= apart ? from[thread - apart] : 0);
    });
    block.sync();
    int* const last = from;
    from = to;
    to = last;
  }
  block.each([&](int thread) { values(thread) = thread == 0 ? 0 : from[thread - 1]; });
  const int all = from[threads - 1];
  block.sync();
  return all;
}

}  // namespace tandem::cuda
