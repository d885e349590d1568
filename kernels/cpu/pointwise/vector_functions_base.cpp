// The pointwise inner loops for the instruction set baseline.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/shared/philox.h"

#define TANDEM_NAMESPACE pointwise_baseline
#define TANDEM_VECTOR_WIDTH 4
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_base.inl"

#include "kernels/cpu/pointwise/vector_functions.inl"

const tandem::VectorFunctions tandem::vector_functions_base = pointwise_baseline::table;
