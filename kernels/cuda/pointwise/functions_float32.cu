// Scalar functions of float32, by units of 16 bytes.
#include "kernels/cuda/pointwise/fixed_functions.h"

namespace tandem::cuda {

PointwiseVariant float32_function(ScalarFunction f) { return fixed_function<float>(f); }

}  // namespace tandem::cuda
