// Weight gradients of depthwise convolutions for the instruction set avx2.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include "kernels/cpu/convolution/depthwise.h"

#define TANDEM_VECTOR_WIDTH 8

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace tandem {
namespace depthwise_avx2 {
namespace {

constexpr int most_window_rows = 2;

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include "kernels/cpu/convolution/depthwise_body.inl"
// clang-format on

}  // namespace
}  // namespace depthwise_avx2

void depthwise_weights_avx2(const DepthwisePart& part) { depthwise_avx2::weights(part); }

}  // namespace tandem

#pragma GCC pop_options
