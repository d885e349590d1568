// Weight gradients of convolutions for the instruction set avx512.
#include "kernels/cpu/convolution/weight_gradient.h"
#include "kernels/cpu/pointwise/intrinsics.h"

#define TANDEM_NAMESPACE weight_tiles_avx512
#define TANDEM_VECTOR_WIDTH 16
#define TANDEM_WEIGHT_TILE weight_tile_avx512
#define TANDEM_PIXELS_AHEAD 8  // as measured

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "kernels/cpu/convolution/weight_gradient.inl"

void tandem::weight_gradient_avx512(const WeightGradientPart& part) {
  weight_tiles_avx512::sum_weights(part);
}

#pragma GCC pop_options
