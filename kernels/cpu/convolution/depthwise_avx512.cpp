// Weight gradients of depthwise convolutions for the instruction set avx512.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include "kernels/cpu/convolution/depthwise.h"

#define TANDEM_VECTOR_WIDTH 16

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace tandem {
namespace depthwise_avx512 {
namespace {

constexpr int most_window_rows = 5;

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include "kernels/cpu/convolution/depthwise_body.inl"
// clang-format on

}  // namespace
}  // namespace depthwise_avx512

void depthwise_weights_avx512(const DepthwisePart& part) { depthwise_avx512::weights(part); }

}  // namespace tandem

#pragma GCC pop_options
