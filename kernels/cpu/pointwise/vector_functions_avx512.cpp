// The pointwise inner loops for the instruction set avx512.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/shared/philox.h"

#define TANDEM_NAMESPACE pointwise_avx512
#define TANDEM_VECTOR_WIDTH 16
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_avx512.inl"

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "kernels/cpu/pointwise/vector_functions.inl"

const tandem::VectorFunctions tandem::vector_functions_avx512 = pointwise_avx512::table;

#pragma GCC pop_options
