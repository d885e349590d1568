// The inner loops of embedding tables for the instruction set baseline.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>

#include "kernels/cpu/rows/vector_rows.h"

#define TANDEM_VECTOR_WIDTH 4

#pragma GCC push_options

namespace tandem {
namespace rows_baseline {
namespace {

#include "kernels/cpu/vector_math.h"

TANDEM_INLINE V sqrt_of(V x) { return reinterpret_cast<V>(_mm_sqrt_ps(x)); }
TANDEM_INLINE V load_rest(const float* p, std::int64_t n) { return load_part(p, n); }
TANDEM_INLINE void store_rest(float* p, V x, std::int64_t n) { store_part(p, x, n); }
TANDEM_INLINE void stream(float* p, V x) { _mm_stream_ps(p, x); }

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
}  // namespace rows_baseline

const VectorRows vector_rows_base = {
    .gather = rows_baseline::gather_range,
    .sum = rows_baseline::sum_range,
    .squares = rows_baseline::squares_range,
    .update = rows_baseline::update_range,
    .elements = rows_baseline::dense_elements,
    .bags = rows_baseline::bag_range,
    .join = rows_baseline::join_row,
    .split = rows_baseline::split_row,
};

}  // namespace tandem

#pragma GCC pop_options
