// The cells of recurrent layers for the instruction set avx512.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rnn/cells.h"

#define TANDEM_NAMESPACE rnn_avx512
#define TANDEM_VECTOR_WIDTH 16

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "kernels/cpu/rnn/cells.inl"

const tandem::RnnCells tandem::rnn_cells_avx512 = rnn_avx512::table;

#pragma GCC pop_options
