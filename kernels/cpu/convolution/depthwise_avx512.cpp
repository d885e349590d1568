// Weight gradients of depthwise convolutions for the instruction set avx512.
#include "kernels/cpu/convolution/depthwise.h"
#include "kernels/cpu/pointwise/intrinsics.h"

#define TANDEM_NAMESPACE depthwise_avx512
#define TANDEM_VECTOR_WIDTH 16
#define TANDEM_WINDOW_ROWS 5  // as many as have sums in registers, for 5 x 5

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "kernels/cpu/convolution/depthwise.inl"

void tandem::depthwise_weights_avx512(const DepthwisePart& part) {
  depthwise_avx512::weights(part);
}

#pragma GCC pop_options
