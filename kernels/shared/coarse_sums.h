// When log_sum_exp no longer gives the probabilities of attention.
#pragma once

#include "engine/graph/host_device.h"

namespace tandem {

/// p = exp(score - log_sum_exp) is wrong by as much as log_sum_exp was rounded: when it is added to
/// -1e30, which a mask may add to every key of a row, all of the sum's logarithm is lost; added to
/// 128, a float32 is off by 2^-18. Beyond that a gradient finds the row's largest score and its sum
/// again. Not for infinities, which say that no key is seen.
template <class T>
TANDEM_HOST_DEVICE inline bool is_coarse_sum(T log_sum_exp) {
  return (log_sum_exp > T(128) || log_sum_exp < T(-128)) && log_sum_exp - log_sum_exp == T(0);
}

}  // namespace tandem
