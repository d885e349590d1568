// Pooling loops with AVX2.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/cpu/convolution/pooling.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace tandem {
namespace avx2 {
namespace {

#include "kernels/cpu/convolution/pooling_body.inl"

}  // namespace
}  // namespace avx2

void pool_map_avx2(const PoolingMap& map) { avx2::pool_map(map); }

}  // namespace tandem

#pragma GCC pop_options
