// Pooling loops with AVX-512.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/cpu/convolution/pooling.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace tandem {
namespace avx512 {
namespace {

#include "kernels/cpu/convolution/pooling_body.inl"

}  // namespace
}  // namespace avx512

void pool_map_avx512(const PoolingMap& map) { avx512::pool_map(map); }

}  // namespace tandem

#pragma GCC pop_options
