// The inner loops of embedding tables for the instruction set avx2.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rows/vector_rows.h"

#define TANDEM_NAMESPACE rows_avx2
#define TANDEM_VECTOR_WIDTH 8
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_avx2.inl"

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "kernels/cpu/rows/vector_rows.inl"

const tandem::VectorRows tandem::vector_rows_avx2 = rows_avx2::table;

#pragma GCC pop_options
