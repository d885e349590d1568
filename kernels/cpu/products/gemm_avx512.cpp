// g++ 12 takes the headers' "undefined" registers for uninitialised variables.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/packed_product.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace tandem {
namespace avx512 {
namespace {

constexpr int max_rows = 14;  // 14 x 2 accumulators, two of B and one broadcast: 31 registers
constexpr std::int64_t prefetch_steps = 8;  // ahead of their use

struct Vector {
  using Type = __m512;
  using Mask = __mmask16;
  static constexpr int width = 16;

  static Type zero() { return _mm512_setzero_ps(); }
  static Type all(float x) { return _mm512_set1_ps(x); }
  static Type load(const float* p) { return _mm512_loadu_ps(p); }
  static Type load(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
  static void store(float* p, Type x) { _mm512_storeu_ps(p, x); }
  static void store(float* p, Type x, Mask mask) { _mm512_mask_storeu_ps(p, mask, x); }
  /// The first `count` lanes.
  static Mask first(std::int64_t count) {
    return static_cast<Mask>(count >= width ? 0xffff : count <= 0 ? 0 : (1u << count) - 1u);
  }
  static Type add(Type a, Type b) { return _mm512_add_ps(a, b); }
  static Type sub(Type a, Type b) { return _mm512_sub_ps(a, b); }
  static Type mul(Type a, Type b) { return _mm512_mul_ps(a, b); }
  static Type div(Type a, Type b) { return _mm512_div_ps(a, b); }
  static Type fma(Type a, Type b, Type c) { return _mm512_fmadd_ps(a, b, c); }
  static Type max(Type a, Type b) { return _mm512_max_ps(a, b); }
  static Type min(Type a, Type b) { return _mm512_min_ps(a, b); }
  static Type abs(Type a) { return _mm512_abs_ps(a); }
  static Type round(Type a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT); }
  static Type scale_by_power(Type a, Type n) { return _mm512_scalef_ps(a, n); }
  static Mask positive(Type a) { return _mm512_cmp_ps_mask(a, zero(), _CMP_GT_OQ); }
  /// 0 where `where` <= 0; NaN lets a pass.
  static Type keep_positive(Type a, Type where) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(where, zero(), _CMP_NLE_UQ), a);
  }
  static Type select_positive(Type x, Type yes, Type no) {
    return _mm512_mask_blend_ps(positive(x), no, yes);
  }

  static void transpose(Type (&r)[16]) {
    Type t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
      r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
      r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
      t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
      t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
      t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
      r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
      r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
      r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
  }
};

#include "kernels/cpu/products/gemm_math.inl"
#include "kernels/cpu/products/gemm_tile.inl"
#include "kernels/cpu/products/packed_product.inl"

}  // namespace
}  // namespace avx512

void gemm_part_avx512(const GemmPart& part) { avx512::gemm_part(part); }
void pack_panels_avx512(const PanelPacking& packing) { avx512::pack_panels(packing); }
void multiply_panel_avx512(const PanelProduct& product) { avx512::multiply_panel(product); }

}  // namespace tandem

#pragma GCC pop_options
