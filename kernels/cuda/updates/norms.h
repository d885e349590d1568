// The second stage of sums: one block adds up what the blocks of the first one found, in their
// order's fixed tree.
#pragma once

#include "kernels/cuda/block/block.h"
#include "kernels/cuda/context.h"

namespace tandem::cuda {

/// y = the sum of `count` numbers.
struct TotalOfSums {
  const double* sums;
  std::int64_t count;
  float* y;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<double> sum;
    block.each([&](int thread) {
      double own = 0;
      for (std::int64_t i = thread; i < count; i += block.threads()) own += sums[i];
      sum(thread) = own;
    });
    const double all = block.sum(sum);
    block.one([&] { *y = static_cast<float>(all); });
  }
};

void launch_total(CardContext& card, const TotalOfSums& body, void* queue);

}  // namespace tandem::cuda
