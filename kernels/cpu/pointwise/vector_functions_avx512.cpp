// The pointwise inner loops for the instruction set avx512.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>

#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/shared/philox.h"

#define TANDEM_VECTOR_WIDTH 16

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace tandem {
namespace pointwise_avx512 {
namespace {

#include "kernels/cpu/pointwise/vector_math.h"

TANDEM_INLINE V sqrt_of(V x) { return reinterpret_cast<V>(_mm512_sqrt_ps(x)); }

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/tile_functions.inl"
#include "kernels/cpu/pointwise/row_functions.inl"
#include "kernels/cpu/pointwise/channel_functions.inl"
#include "kernels/cpu/pointwise/dropout_functions.inl"
#include "kernels/cpu/pointwise/vector_table.inl"
// clang-format on

}  // namespace
}  // namespace pointwise_avx512

const VectorFunctions vector_functions_avx512 = pointwise_avx512::table;

}  // namespace tandem

#pragma GCC pop_options
