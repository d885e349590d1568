// The pointwise inner loops for one instruction set, and their table. Included by
// vector_functions_*.cpp under its pragma; TANDEM_NAMESPACE is its own.

namespace tandem {
namespace TANDEM_NAMESPACE {
namespace {

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include TANDEM_ISA_FUNCTIONS
#include "kernels/cpu/pointwise/tile_functions.inl"
#include "kernels/cpu/pointwise/row_functions.inl"
#include "kernels/cpu/pointwise/column_functions.inl"
#include "kernels/cpu/pointwise/channel_functions.inl"
#include "kernels/cpu/pointwise/dropout_functions.inl"
#include "kernels/cpu/pointwise/vector_table.inl"
// clang-format on

}  // namespace
}  // namespace TANDEM_NAMESPACE
}  // namespace tandem
