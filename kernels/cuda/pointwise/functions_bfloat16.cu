// Scalar functions of bfloat16, by units of 16 bytes.
#include "kernels/cuda/pointwise/fixed_functions.h"

namespace tandem::cuda {

PointwiseVariant bfloat16_function(ScalarFunction f) { return fixed_function<GpuBFloat16>(f); }

}  // namespace tandem::cuda
