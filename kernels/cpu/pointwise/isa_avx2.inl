// What loops need of AVX2 in addition to vector_math.h. Included inside an ISA-named namespace.

TANDEM_INLINE V sqrt_of(V x) { return reinterpret_cast<V>(_mm256_sqrt_ps(x)); }
TANDEM_INLINE __m256i first_lanes(std::int64_t n) {
  const Int lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  return reinterpret_cast<__m256i>(lanes < static_cast<std::int32_t>(n));
}
TANDEM_INLINE V load_rest(const float* p, std::int64_t n) {
  return reinterpret_cast<V>(_mm256_maskload_ps(p, first_lanes(n)));
}
TANDEM_INLINE void store_rest(float* p, V x, std::int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), x);
}
TANDEM_INLINE void stream(float* p, V x) { _mm256_stream_ps(p, x); }
