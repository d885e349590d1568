// Scalar functions of float16, by units of 16 bytes.
#include "kernels/cuda/pointwise/fixed_functions.h"

namespace tandem::cuda {

PointwiseVariant float16_function(ScalarFunction f) { return fixed_function<GpuFloat16>(f); }

}  // namespace tandem::cuda
