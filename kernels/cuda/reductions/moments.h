// Means and deviations of parts of many numbers, and of all of them.
#pragma once

#include "kernels/cuda/reductions/columns.h"

namespace tandem::cuda::reductions {

/// Mean and sum of squared deviations of some numbers.
struct Moments {
  float count, mean, squares;
};

/// The moments of both sets together (Chan, Golub and LeVeque 1979): d = mean b - mean a, mean =
/// mean a + d nb / n, squares = squares a + squares b + d^2 na nb / n.
struct JoinMoments {
  TANDEM_HOST_DEVICE Moments operator()(const Moments& a, const Moments& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const float count = a.count + b.count, share = b.count / count;
    const float between = b.mean - a.mean;
    return {count, a.mean + between * share,
            a.squares + b.squares + between * between * a.count * share};
  }
};

}  // namespace tandem::cuda::reductions
