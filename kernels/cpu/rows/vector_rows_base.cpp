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

#include "kernels/cpu/pointwise/vector_math.h"
// Each uses the one before.
// clang-format off
#include "kernels/cpu/rows/isa_base.inl"
#include "kernels/cpu/rows/row_access.inl"
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
    .bags = rows_baseline::bag_range,
    .join = rows_baseline::join_row,
    .split = rows_baseline::split_row,
};

}  // namespace tandem

#pragma GCC pop_options
