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

#include "kernels/cpu/pointwise/vector_math.h"
// Each uses the one before.
// clang-format off
#include "kernels/cpu/rows/isa_avx512.inl"
#include "kernels/cpu/rows/row_access.inl"
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
    .bags = rows_avx512::bag_range,
    .join = rows_avx512::join_row,
    .split = rows_avx512::split_row,
};

}  // namespace tandem

#pragma GCC pop_options
