// Elements of a float type that is known at run time, as kernels read and write them: one or four
// at a time, in float32.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/host_device.h"
#include "engine/graph/types.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda {

enum class Floats : std::uint8_t { float32, float16, bfloat16 };

inline std::optional<Floats> floats_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return Floats::float32;
    case DType::float16:
      return Floats::float16;
    case DType::bfloat16:
      return Floats::bfloat16;
    default:
      return std::nullopt;
  }
}
/// Bytes of an element.
inline int size_of(Floats type) { return type == Floats::float32 ? 4 : 2; }

TANDEM_HOST_DEVICE inline float widened(std::uint16_t bits, Floats type) {
  return type == Floats::bfloat16 ? widened(GpuBFloat16{bits}) : widened(GpuFloat16{bits});
}
/// Rounded to nearest, ties to even; NaN stays NaN.
TANDEM_HOST_DEVICE inline std::uint16_t narrowed(float x, Floats type) {
  return type == Floats::bfloat16 ? stored<GpuBFloat16>(x).bits : stored<GpuFloat16>(x).bits;
}

/// The float32 that the halves of a split one make, and back (engine/graph/split_float.h).
TANDEM_HOST_DEVICE inline float joined(std::uint16_t top, std::int16_t tail) {
  return from_bits<float>((static_cast<std::uint32_t>(top) << 16) +
                          static_cast<std::uint32_t>(static_cast<std::int32_t>(tail)));
}
TANDEM_HOST_DEVICE inline void split(float x, std::uint16_t& top, std::int16_t& tail) {
  auto bits = __builtin_bit_cast(std::uint32_t, x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) bits = (bits & 0xffff0000u) | 0x00400000u;
  top = static_cast<std::uint16_t>((bits + 0x8000u) >> 16);
  tail = static_cast<std::int16_t>(static_cast<std::uint16_t>(bits));
}

/// n elements in turn: 1 or 4, which are one access of memory.
template <int n>
struct Values {
  float at[n];
};

/// Elements [first, first + n), aligned to n of them.
template <int n>
TANDEM_HOST_DEVICE Values<n> load(const float* data, std::int64_t first) {
  Values<n> values;
  load(values.at, data + first);
  return values;
}
template <int n>
TANDEM_HOST_DEVICE void store(float* data, std::int64_t first, const Values<n>& values) {
  store(data + first, values.at);
}

/// Like Values, for 16 bits of any meaning.
template <class T, int n>
struct Bits {
  T at[n];
};
template <int n, class T>
TANDEM_HOST_DEVICE Bits<T, n> load_bits(const T* data, std::int64_t first) {
  Bits<T, n> bits;
  load(bits.at, data + first);
  return bits;
}
template <int n, class T>
TANDEM_HOST_DEVICE void store_bits(T* data, std::int64_t first, const Bits<T, n>& bits) {
  store(data + first, bits.at);
}

template <int n>
TANDEM_HOST_DEVICE Values<n> load(const void* data, Floats type, std::int64_t first) {
  if (type == Floats::float32) return load<n>(static_cast<const float*>(data), first);
  const auto bits = load_bits<n>(static_cast<const std::uint16_t*>(data), first);
  Values<n> values;
  for (int i = 0; i < n; ++i) values.at[i] = widened(bits.at[i], type);
  return values;
}
template <int n>
TANDEM_HOST_DEVICE void store(void* data, Floats type, std::int64_t first,
                              const Values<n>& values) {
  if (type == Floats::float32) return store<n>(static_cast<float*>(data), first, values);
  Bits<std::uint16_t, n> bits;
  for (int i = 0; i < n; ++i) bits.at[i] = narrowed(values.at[i], type);
  store_bits<n>(static_cast<std::uint16_t*>(data), first, bits);
}

/// n elements of the states that a rule keeps, from element `at` on; the others stay as they are.
template <class Rule, int n>
TANDEM_HOST_DEVICE void load_states(float* const* from, std::int64_t at, Values<n>* states) {
  for (int s = 0; s < Rule::states; ++s) {
    if (Rule::has(s)) states[s] = load<n>(from[s], at);
  }
}
template <class Rule, int n>
TANDEM_HOST_DEVICE void store_states(float* const* to, std::int64_t at, const Values<n>* states) {
  for (int s = 0; s < Rule::states; ++s) {
    if (Rule::has(s)) store<n>(to[s], at, states[s]);
  }
}

}  // namespace tandem::cuda
