// How many blocks a kernel with strides over its work takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/context.h"

namespace tandem::cuda::networks {

inline constexpr unsigned walk_threads = 256;

/// For a thread to each unit, in strides where that were more than eight blocks a multiprocessor.
inline LaunchShape walk_shape(const CardContext& card, std::int64_t units) {
  const std::int64_t wanted = (units + walk_threads - 1) / walk_threads;
  const std::int64_t most = std::max(card.properties.multiprocessors, 1) * std::int64_t{8};
  return {.blocks = static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most)),
          .threads = walk_threads};
}

}  // namespace tandem::cuda::networks
