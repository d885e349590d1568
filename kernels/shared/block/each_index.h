// The walk of all blocks' threads over what a kernel computes element by element.
#pragma once

#include "kernels/shared/block/block.h"

namespace tandem::cuda {

/// f(i) for each i of [0, count), spread over the threads of all blocks. No barrier.
template <class Block, class F>
TANDEM_HOST_DEVICE void each_index(const Block& block, std::int64_t count, F f) {
  const std::int64_t step = std::int64_t{block.blocks()} * block.threads();
  block.each([&](int thread) {
    std::int64_t i = std::int64_t{block.index()} * block.threads() + thread;
    for (; i < count; i += step) f(i);
  });
}

}  // namespace tandem::cuda
