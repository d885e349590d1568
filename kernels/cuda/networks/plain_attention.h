// Attention in tiles, summed in float32: for every size, type and mask.
#pragma once

#include <cstdint>

#include "engine/graph/types.h"
#include "kernels/cuda/context.h"

namespace tandem::cuda {

/// Strides of [B, H, rows, columns] in elements.
struct HeadMap {
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

/// q [B, H, S, D], k [B, H, T, D], v [B, H, T, E]; scores = scale q k^T + mask. `is_causal` hides
/// key j from query i where j > i + T - S.
struct PlainAttention {
  DType dtype = DType::float32;
  std::int64_t batch = 0, heads = 0, queries = 0, keys = 0, key_size = 0, value_size = 0;
  HeadMap q, k, v, y, dy, dq, dk, dv;
  HeadMap mask;  // over [B, H, S, T]
  bool is_masked = false, is_causal = false;
  float scale = 1;
};

/// What the gradient keeps of each query.
inline constexpr std::int64_t row_numbers_of_gradient = 3;

/// Absent operands are null, and so are those of y, log_sum_exp, dq, dk, dv that are not wanted.
struct AttentionAddresses {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr;
  const void *y_read = nullptr, *dy = nullptr;
  const float* log_sum_exp_read = nullptr;  // [B, H, S], row-major, as the next two
  float* log_sum_exp = nullptr;
  float* of_rows = nullptr;  // workspace of the gradient: row_numbers_of_gradient for each query
  void *y = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

void run_attention(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                   void* queue);
void run_attention_gradient(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                            void* queue);

/// After a library's attention: queries that see no key get y = 0 and log_sum_exp = -infinity.
void mend_blind_queries(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                        void* queue);
/// Before a library's gradient: a copy of log_sum_exp with infinity for such queries, so that
/// exp(score - log_sum_exp) is 0.
void mend_blind_sums(GpuContext& gpu, std::int64_t rows, const float* from, float* to, void* queue);

}  // namespace tandem::cuda
