// float32 rows in two halves (engine/graph/split_float.h). Included by vector_rows_*.cpp.

using Words = std::uint32_t __attribute__((vector_size(4 * width)));
using Halves = std::uint16_t __attribute__((vector_size(2 * width)));
using HalvesUnaligned =
    std::uint16_t __attribute__((vector_size(2 * width), aligned(2), may_alias));
using TailsUnaligned = std::int16_t __attribute__((vector_size(2 * width), aligned(2), may_alias));

TANDEM_INLINE float join_one(Half top, std::int16_t tail) {
  return __builtin_bit_cast(float, (static_cast<std::uint32_t>(top) << 16) +
                                       static_cast<std::uint32_t>(static_cast<std::int32_t>(tail)));
}
TANDEM_INLINE void split_one(float x, Half* top, std::int16_t* tail) {
  std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
  if (x != x) bits = (bits & 0xffff0000u) | 0x00400000u;
  *top = static_cast<Half>((bits + 0x8000u) >> 16);
  *tail = static_cast<std::int16_t>(static_cast<Half>(bits));
}

void join_row(const Half* top, const std::int16_t* tail, float* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    const Words high =
        __builtin_convertvector(*reinterpret_cast<const HalvesUnaligned*>(top + i), Words) << 16;
    const Int low =
        __builtin_convertvector(*reinterpret_cast<const TailsUnaligned*>(tail + i), Int);
    store(x + i, reinterpret_cast<V>(high + reinterpret_cast<Words>(low)));
  }
  for (; i < n; ++i) x[i] = join_one(top[i], tail[i]);
}

void split_row(const float* x, Half* top, std::int16_t* tail, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    const V value = load(x + i);
    const Words given = reinterpret_cast<Words>(value);
    const Words bits = value != value ? (given & 0xffff0000u) | 0x00400000u : given;
    *reinterpret_cast<HalvesUnaligned*>(top + i) =
        __builtin_convertvector((bits + 0x8000u) >> 16, Halves);
    *reinterpret_cast<HalvesUnaligned*>(tail + i) = __builtin_convertvector(bits, Halves);
  }
  for (; i < n; ++i) split_one(x[i], top + i, tail + i);
}
