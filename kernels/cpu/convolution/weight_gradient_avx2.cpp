// Weight gradients of convolutions for the instruction set avx2.
#include "kernels/cpu/convolution/weight_gradient.h"
#include "kernels/cpu/pointwise/intrinsics.h"

#define TANDEM_NAMESPACE weight_tiles_avx2
#define TANDEM_VECTOR_WIDTH 8
#define TANDEM_WEIGHT_TILE weight_tile_avx2
#define TANDEM_PIXELS_AHEAD 0  // as measured

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "kernels/cpu/convolution/weight_gradient.inl"

void tandem::weight_gradient_avx2(const WeightGradientPart& part) {
  weight_tiles_avx2::sum_weights(part);
}

#pragma GCC pop_options
