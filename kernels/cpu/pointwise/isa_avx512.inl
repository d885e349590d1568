// What loops need of AVX-512 in addition to vector_math.h. Included inside an ISA-named namespace.

TANDEM_INLINE V sqrt_of(V x) { return reinterpret_cast<V>(_mm512_sqrt_ps(x)); }
TANDEM_INLINE __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}
TANDEM_INLINE V load_rest(const float* p, std::int64_t n) {
  return reinterpret_cast<V>(_mm512_maskz_loadu_ps(first_lanes(n), p));
}
TANDEM_INLINE void store_rest(float* p, V x, std::int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
TANDEM_INLINE void stream(float* p, V x) { _mm512_stream_ps(p, x); }
