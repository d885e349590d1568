// The inner loops of embedding tables for the instruction set avx2.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>

#include "kernels/cpu/rows/vector_rows.h"

#define TANDEM_VECTOR_WIDTH 8

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace tandem {
namespace rows_avx2 {
namespace {

#include "kernels/cpu/vector_math.h"

TANDEM_INLINE V sqrt_of(V x) { return reinterpret_cast<V>(_mm256_sqrt_ps(x)); }
TANDEM_INLINE __m256i first_lanes(std::int64_t n) {
  const Int lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  return reinterpret_cast<__m256i>(lanes < static_cast<std::int32_t>(n));
}
TANDEM_INLINE V load_rest(const float* p, std::int64_t n) {
  return reinterpret_cast<V>(_mm256_maskload_ps(p, first_lanes(n)));
}
TANDEM_INLINE void store_rest(float* p, V x, std::int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), x);
}
TANDEM_INLINE void stream(float* p, V x) { _mm256_stream_ps(p, x); }

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
}  // namespace rows_avx2

const VectorRows vector_rows_avx2 = {
    .gather = rows_avx2::gather_range,
    .sum = rows_avx2::sum_range,
    .squares = rows_avx2::squares_range,
    .update = rows_avx2::update_range,
    .elements = rows_avx2::dense_elements,
    .bags = rows_avx2::bag_range,
    .join = rows_avx2::join_row,
    .split = rows_avx2::split_row,
};

}  // namespace tandem

#pragma GCC pop_options
