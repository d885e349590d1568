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

#include "kernels/cpu/pointwise/vector_math.h"
// Each uses the one before.
// clang-format off
#include "kernels/cpu/rows/isa_avx2.inl"
#include "kernels/cpu/rows/row_access.inl"
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
    .bags = rows_avx2::bag_range,
    .join = rows_avx2::join_row,
    .split = rows_avx2::split_row,
};

}  // namespace tandem

#pragma GCC pop_options
