// The cells of recurrent layers for the instruction set avx2.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rnn/cells.h"

#define TANDEM_NAMESPACE rnn_avx2
#define TANDEM_VECTOR_WIDTH 8

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "kernels/cpu/rnn/cells.inl"

const tandem::RnnCells tandem::rnn_cells_avx2 = rnn_avx2::table;

#pragma GCC pop_options
