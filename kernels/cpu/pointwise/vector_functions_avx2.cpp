// The pointwise inner loops for the instruction set avx2.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/shared/philox.h"

#define TANDEM_NAMESPACE pointwise_avx2
#define TANDEM_VECTOR_WIDTH 8
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_avx2.inl"

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "kernels/cpu/pointwise/vector_functions.inl"

const tandem::VectorFunctions tandem::vector_functions_avx2 = pointwise_avx2::table;

#pragma GCC pop_options
