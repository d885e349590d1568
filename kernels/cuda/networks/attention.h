// What the two families of attention kernels read of a request.
#pragma once

#include "kernels/cuda/networks/networks.h"
#include "kernels/cuda/networks/plain_attention.h"

namespace tandem::cuda {

/// Which inputs an Attention or AttentionGrad has where.
struct AttentionPorts {
  bool is_gradient = false;
  std::size_t q = 0, k = 1, v = 2, mask = 3;   // Attention
  std::size_t dy = 0, y = 4, log_sum_exp = 5;  // only AttentionGrad

  explicit AttentionPorts(const KernelRequest& request);
};

/// Strides as they lie; of operands that are absent, row-major.
PlainAttention plain_attention_of(const KernelRequest& request);

}  // namespace tandem::cuda
