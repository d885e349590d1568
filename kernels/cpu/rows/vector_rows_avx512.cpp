// The inner loops of embedding tables for the instruction set avx512.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>

#include "kernels/cpu/rows/vector_rows.h"

#define TANDEM_VECTOR_WIDTH 16

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace tandem {
namespace rows_avx512 {
namespace {

#include "kernels/cpu/vector_math.h"

TANDEM_INLINE V sqrt_of(V x) { return reinterpret_cast<V>(_mm512_sqrt_ps(x)); }
TANDEM_INLINE __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}
TANDEM_INLINE V load_rest(const float* p, std::int64_t n) {
  return reinterpret_cast<V>(_mm512_maskz_loadu_ps(first_lanes(n), p));
}
TANDEM_INLINE void store_rest(float* p, V x, std::int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
TANDEM_INLINE void stream(float* p, V x) { _mm512_stream_ps(p, x); }

// Each uses the one before.
// clang-format off
#include "kernels/cpu/rows/row_streams.inl"
#include "kernels/cpu/rows/narrow_sums.inl"
#include "kernels/cpu/rows/row_sums.inl"
#include "kernels/cpu/rows/row_split.inl"
#include "kernels/cpu/rows/row_updates.inl"
#include "kernels/cpu/rows/row_lookup.inl"
// clang-format on

}  // namespace
}  // namespace rows_avx512

const VectorRows vector_rows_avx512 = {
    .gather = rows_avx512::gather_range,
    .sum = rows_avx512::sum_range,
    .squares = rows_avx512::squares_range,
    .update = rows_avx512::update_range,
    .elements = rows_avx512::dense_elements,
    .bags = rows_avx512::bag_range,
    .join = rows_avx512::join_row,
    .split = rows_avx512::split_row,
};

}  // namespace tandem

#pragma GCC pop_options
