// A float32 in two halves: a bfloat16, which lookups in a table read and links carry, and the 16
// bits that it lacks, which updates read as well. bits(x) = (top << 16) + tail, with a signed tail.
//
// top is x rounded to nearest, a tie away from zero. Ties to even cannot be undone: 65,537 floats
// round to each even top, and a tail has 65,536 values. Every float32 comes back bit by bit, but a
// NaN: it stays one, with its sign, and loses the lower half of its payload.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem {

struct SplitFloat {
  std::uint16_t top = 0;  // a bfloat16
  std::int16_t tail = 0;
};

inline SplitFloat split_float(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) bits = (bits & 0xffff0000u) | 0x00400000u;
  return {static_cast<std::uint16_t>((bits + 0x8000u) >> 16),
          static_cast<std::int16_t>(static_cast<std::uint16_t>(bits))};
}

inline float join_float(std::uint16_t top, std::int16_t tail) {
  return std::bit_cast<float>((static_cast<std::uint32_t>(top) << 16) +
                              static_cast<std::uint32_t>(static_cast<std::int32_t>(tail)));
}

/// split_float for n numbers; a result that is not wanted may be null.
inline void split_floats(const float* x, std::uint16_t* top, std::int16_t* tail, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const SplitFloat halves = split_float(x[i]);
    if (top != nullptr) top[i] = halves.top;
    if (tail != nullptr) tail[i] = halves.tail;
  }
}
inline void join_floats(const std::uint16_t* top, const std::int16_t* tail, float* x,
                        std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = join_float(top[i], tail[i]);
}

}  // namespace tandem
