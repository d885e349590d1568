// The inner loops of embedding tables for the instruction set avx512.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rows/vector_rows.h"

#define TANDEM_NAMESPACE rows_avx512
#define TANDEM_VECTOR_WIDTH 16
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_avx512.inl"

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "kernels/cpu/rows/vector_rows.inl"

const tandem::VectorRows tandem::vector_rows_avx512 = rows_avx512::table;

#pragma GCC pop_options
