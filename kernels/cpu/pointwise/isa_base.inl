// What loops need of the baseline in addition to vector_math.h. Included inside an ISA-named
// namespace.

TANDEM_INLINE V sqrt_of(V x) { return reinterpret_cast<V>(_mm_sqrt_ps(x)); }
TANDEM_INLINE V load_rest(const float* p, std::int64_t n) { return load_part(p, n); }
TANDEM_INLINE void store_rest(float* p, V x, std::int64_t n) { store_part(p, x, n); }
TANDEM_INLINE void stream(float* p, V x) { _mm_stream_ps(p, x); }
