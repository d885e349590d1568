// The cells of recurrent layers for the instruction set avx512.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include "kernels/cpu/rnn/cells.h"

#define TANDEM_VECTOR_WIDTH 16

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace tandem {
namespace rnn_avx512 {
namespace {

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include "kernels/cpu/rnn/cells.inl"
// clang-format on

}  // namespace
}  // namespace rnn_avx512

const RnnCells rnn_cells_avx512 = rnn_avx512::table;

}  // namespace tandem

#pragma GCC pop_options
