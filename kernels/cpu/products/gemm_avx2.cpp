// Packed matrix products with AVX2 and FMA: 6 x 16 tiles.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/packed_product.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace tandem {
namespace avx2 {
namespace {

constexpr int max_rows = 6;  // 6 x 2 accumulators, two of B and one broadcast: 15 registers
constexpr std::int64_t prefetch_steps = 8;  // ahead of their use

struct Vector {
  using Type = __m256;
  using Mask = __m256i;
  static constexpr int width = 8;

  static Type zero() { return _mm256_setzero_ps(); }
  static Type all(float x) { return _mm256_set1_ps(x); }
  static Type load(const float* p) { return _mm256_loadu_ps(p); }
  static Type load(const float* p, Mask mask) { return _mm256_maskload_ps(p, mask); }
  static void store(float* p, Type x) { _mm256_storeu_ps(p, x); }
  static void store(float* p, Type x, Mask mask) { _mm256_maskstore_ps(p, mask, x); }
  /// The first `count` lanes.
  static Mask first(std::int64_t count) {
    const int n = static_cast<int>(std::clamp<std::int64_t>(count, 0, width));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Type add(Type a, Type b) { return _mm256_add_ps(a, b); }
  static Type sub(Type a, Type b) { return _mm256_sub_ps(a, b); }
  static Type mul(Type a, Type b) { return _mm256_mul_ps(a, b); }
  static Type div(Type a, Type b) { return _mm256_div_ps(a, b); }
  static Type fma(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
  static Type max(Type a, Type b) { return _mm256_max_ps(a, b); }
  static Type min(Type a, Type b) { return _mm256_min_ps(a, b); }
  static Type abs(Type a) { return _mm256_andnot_ps(all(-0.0f), a); }
  static Type round(Type a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Type scale_by_power(Type a, Type n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return mul(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  static Type positive(Type a) { return _mm256_cmp_ps(a, zero(), _CMP_GT_OQ); }
  /// 0 where `where` <= 0; NaN lets a pass.
  static Type keep_positive(Type a, Type where) {
    return _mm256_and_ps(_mm256_cmp_ps(where, zero(), _CMP_NLE_UQ), a);
  }
  static Type select_positive(Type x, Type yes, Type no) {
    return _mm256_blendv_ps(no, yes, positive(x));
  }

  static void transpose(Type (&r)[8]) {
    Type t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
      r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
      r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
      r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
      t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i] = t[i];
  }
};

#include "kernels/cpu/products/gemm_math.inl"
#include "kernels/cpu/products/gemm_tile.inl"
#include "kernels/cpu/products/packed_product.inl"

}  // namespace
}  // namespace avx2

void gemm_part_avx2(const GemmPart& part) { avx2::gemm_part(part); }
void pack_panels_avx2(const PanelPacking& packing) { avx2::pack_panels(packing); }
void multiply_panel_avx2(const PanelProduct& product) { avx2::multiply_panel(product); }

}  // namespace tandem

#pragma GCC pop_options
