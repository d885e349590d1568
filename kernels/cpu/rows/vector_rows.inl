// The inner loops of embedding tables for one instruction set, and their table. Included by
// vector_rows_*.cpp under its pragma; TANDEM_NAMESPACE is its own.

namespace tandem {
namespace TANDEM_NAMESPACE {
namespace {

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include TANDEM_ISA_FUNCTIONS
#include "kernels/cpu/rows/row_access.inl"
#include "kernels/cpu/rows/row_streams.inl"
#include "kernels/cpu/rows/narrow_sums.inl"
#include "kernels/cpu/rows/row_sums.inl"
#include "kernels/cpu/rows/row_split.inl"
#include "kernels/cpu/rows/row_updates.inl"
#include "kernels/cpu/rows/row_lookup.inl"
// clang-format on

constexpr VectorRows table = {
    .gather = gather_range,
    .sum = sum_range,
    .squares = squares_range,
    .update = update_range,
    .bags = bag_range,
    .join = join_row,
    .split = split_row,
};

}  // namespace
}  // namespace TANDEM_NAMESPACE
}  // namespace tandem
