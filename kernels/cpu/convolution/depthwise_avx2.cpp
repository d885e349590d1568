// Weight gradients of depthwise convolutions for the instruction set avx2.
#include "kernels/cpu/convolution/depthwise.h"
#include "kernels/cpu/pointwise/intrinsics.h"

#define TANDEM_NAMESPACE depthwise_avx2
#define TANDEM_VECTOR_WIDTH 8
#define TANDEM_WINDOW_ROWS 2  // as many as have sums in registers, for 5 x 5

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "kernels/cpu/convolution/depthwise.inl"

void tandem::depthwise_weights_avx2(const DepthwisePart& part) { depthwise_avx2::weights(part); }

#pragma GCC pop_options
