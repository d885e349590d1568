// Attention and its gradient as cuDNN computes them without a buffer of scores.
#pragma once

#include "kernels/cuda/networks/graph.h"

namespace tandem::cuda {

/// q [B, H, S, D], k [B, H, T, D], v [B, H, T, E]. Strides of [B, H, rows, columns] in elements,
/// the last one 1.
struct AttentionShape {
  DType dtype = DType::float16;
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, key_size = 1, value_size = 1;
  std::vector<std::int64_t> q, k, v, y;      // strides
  std::vector<std::int64_t> dy, dq, dk, dv;  // the gradient's strides
  Shape mask;  // 4 extents that broadcast to [B, H, S, T]; empty: none
  std::vector<std::int64_t> mask_strides;
  bool is_causal = false;        // a key is seen by the queries from its own place on; S = T
  bool is_deterministic = true;  // the gradient is; costs a buffer of scores
  double scale = 1;
};

/// Row-major strides of all operands.
AttentionShape dense_attention(DType dtype, std::int64_t batch, std::int64_t heads,
                               std::int64_t queries, std::int64_t keys, std::int64_t key_size,
                               std::int64_t value_size);

/// Tensors in memory: q, k, v, mask (where there is one), y, log_sum_exp.
NetworkGraph attention_graph(const AttentionShape& shape);
/// Tensors in memory: dy, q, k, v, y, log_sum_exp, mask (where there is one), dq, dk, dv, and for a
/// gradient that is not deterministic the float32 sum of dq [B, H, S, D], zero before.
NetworkGraph attention_gradient_graph(const AttentionShape& shape);

}  // namespace tandem::cuda
