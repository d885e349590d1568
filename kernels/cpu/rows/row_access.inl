// float32 rows whole and in two halves (engine/graph/split_float.h). Included inside ISA-named
// namespaces.

#define TANDEM_LAMBDA __attribute__((always_inline))

using Half = std::uint16_t;  // a bfloat16
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

TANDEM_INLINE V load_split(const Half* top, const std::int16_t* tail) {
  const Words high = __builtin_convertvector(*reinterpret_cast<const HalvesUnaligned*>(top), Words)
                     << 16;
  const Int low = __builtin_convertvector(*reinterpret_cast<const TailsUnaligned*>(tail), Int);
  return reinterpret_cast<V>(high + reinterpret_cast<Words>(low));
}
TANDEM_INLINE void store_split(V x, Half* top, std::int16_t* tail) {
  const Words given = reinterpret_cast<Words>(x);
  const Words bits = x != x ? (given & 0xffff0000u) | 0x00400000u : given;
  *reinterpret_cast<HalvesUnaligned*>(top) =
      __builtin_convertvector((bits + 0x8000u) >> 16, Halves);
  *reinterpret_cast<HalvesUnaligned*>(tail) = __builtin_convertvector(bits, Halves);
}

/// A row of a table as updates load and store it: whole, or in halves.
struct WholeRow {
  static constexpr bool split = false;
  float* w;
  TANDEM_INLINE V at(std::int64_t i) const { return load(w + i); }
  TANDEM_INLINE V rest(std::int64_t i, std::int64_t n) const { return load_rest(w + i, n); }
  TANDEM_INLINE void set(std::int64_t i, V x) const { store(w + i, x); }
  TANDEM_INLINE void set_rest(std::int64_t i, V x, std::int64_t n) const {
    store_rest(w + i, x, n);
  }
};
struct SplitRow {
  static constexpr bool split = true;
  Half* top;
  std::int16_t* tail;
  TANDEM_INLINE V at(std::int64_t i) const { return load_split(top + i, tail + i); }
  TANDEM_INLINE V rest(std::int64_t i, std::int64_t n) const {
    float lanes[width] = {};
    for (std::int64_t k = 0; k < n; ++k) lanes[k] = join_one(top[i + k], tail[i + k]);
    return load(lanes);
  }
  TANDEM_INLINE void set(std::int64_t i, V x) const { store_split(x, top + i, tail + i); }
  TANDEM_INLINE void set_rest(std::int64_t i, V x, std::int64_t n) const {
    float lanes[width];
    store(lanes, x);
    for (std::int64_t k = 0; k < n; ++k) split_one(lanes[k], top + i + k, tail + i + k);
  }
};
