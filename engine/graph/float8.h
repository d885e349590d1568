// The five 8-bit floats of ONNX: the numbers that codes represent, and the codes of numbers. They
// are storage; computation takes float32.
//
//   type             sign, exponent, mantissa; bias   largest   infinity   NaN          -0
//   float8_e4m3fn    1, 4, 3; 7                       448       none       0x7f, 0xff   0x80
//   float8_e4m3fnuz  1, 4, 3; 8                       240       none       0x80         none
//   float8_e5m2      1, 5, 2; 15                      57344     0x7c       0x7d to 0x7f 0x80
//   float8_e5m2fnuz  1, 5, 2; 16                      57344     none       0x80         none
//   float8_e8m0fnu   0, 8, 0; 127: 2^(code - 127)     2^127     none       0xff         no 0 at all
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "engine/graph/types.h"

namespace tandem {

/// How float8_e8m0fnu rounds: to the next power of two away from zero, towards zero, or to the
/// nearest one with ties away from zero. The other types round to nearest, ties to even.
enum class Float8Rounding : std::uint8_t { up, down, nearest };

struct Float8Format {
  int mantissa_bits = 0, bias = 0;
  int largest = 0;              // code of the largest finite number
  int infinity = -1;            // its code, or -1
  int nan = 0;                  // the code that conversions make
  bool signed_specials = true;  // -0 and -NaN have codes of their own
};

/// The format of a type that has a mantissa.
constexpr Float8Format float8_format(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3fn:
      return {3, 7, 0x7e, -1, 0x7f, true};
    case DType::float8_e4m3fnuz:
      return {3, 8, 0x7f, -1, 0x80, false};
    case DType::float8_e5m2:
      return {2, 15, 0x7b, 0x7c, 0x7e, true};
    case DType::float8_e5m2fnuz:
      return {2, 16, 0x7f, -1, 0x80, false};
    default:
      assert(false && "no 8-bit float with a mantissa");
      return {};
  }
}

namespace float8 {

inline constexpr std::uint32_t one = std::uint32_t{1} << 23;  // the implicit bit of a float

/// 2^n as a float, n from -149 to 127.
constexpr float power_of_two(int n) {
  return n >= -126 ? std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23)
                   : std::bit_cast<float>(std::uint32_t{1} << (n + 149));
}

constexpr float signed_nan(bool negative) {
  return std::bit_cast<float>(negative ? 0xffc00000u : 0x7fc00000u);
}

/// |x| as mantissa * 2^(exponent - 23), the mantissa from 2^23 to below 2^24; 0 has the mantissa 0.
struct Magnitude {
  std::uint32_t mantissa = 0;
  int exponent = 0;
  bool negative = false, is_nan = false, is_infinite = false;
};

constexpr Magnitude magnitude_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto field = static_cast<int>(bits >> 23 & 0xff);
  const std::uint32_t fraction = bits & (one - 1);
  Magnitude m;
  m.negative = bits >> 31 != 0;
  if (field == 0xff) {
    m.is_nan = fraction != 0;
    m.is_infinite = !m.is_nan;
  } else if (field != 0) {
    m.mantissa = one | fraction;
    m.exponent = field - 127;
  } else if (fraction != 0) {  // below 2^-126
    const int places = std::countl_zero(fraction) - std::countl_zero(one);
    m.mantissa = fraction << places;
    m.exponent = -126 - places;
  }
  return m;
}

/// mantissa / 2^shift, rounded to nearest, ties to even; shift >= 1.
constexpr std::uint32_t rounded_shift(std::uint32_t mantissa, int shift) {
  if (shift > 25) return 0;  // below a half
  const std::uint32_t half = std::uint32_t{1} << (shift - 1);
  const std::uint32_t rest = mantissa & (2 * half - 1);
  const std::uint32_t whole = mantissa >> shift;
  return whole + (rest > half || (rest == half && (whole & 1) != 0) ? 1 : 0);
}

/// Negative numbers are encoded by their magnitude: ONNX does not define them.
constexpr std::uint8_t encode_power(const Magnitude& m, bool saturate, Float8Rounding rounding) {
  constexpr std::uint8_t nan = 0xff, largest = 0xfe;
  if (m.is_nan) return nan;
  if (m.is_infinite) return saturate ? largest : nan;
  if (m.mantissa == 0 || m.exponent < -127) return saturate ? 0 : nan;
  const std::uint32_t fraction = m.mantissa - one;
  const bool goes_up = rounding == Float8Rounding::up        ? fraction > 0
                       : rounding == Float8Rounding::nearest ? fraction >= one / 2
                                                             : false;
  const int code = m.exponent + 127 + (goes_up ? 1 : 0);
  if (code > largest) return saturate ? largest : nan;
  return static_cast<std::uint8_t>(code);
}

}  // namespace float8

/// The number that a code represents, exactly.
constexpr float decode_float8(DType dtype, std::uint8_t code) {
  using namespace float8;
  if (dtype == DType::float8_e8m0fnu)
    return code == 0xff ? signed_nan(false) : power_of_two(code - 127);
  const Float8Format format = float8_format(dtype);
  const bool negative = (code & 0x80) != 0;
  const int magnitude = code & 0x7f;
  if (!format.signed_specials && code == format.nan) return signed_nan(false);
  if (magnitude == format.infinity) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return negative ? -infinity : infinity;
  }
  if (magnitude > format.largest) return signed_nan(negative);
  const int field = magnitude >> format.mantissa_bits;
  int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  if (field > 0) mantissa += 1 << format.mantissa_bits;
  const int exponent = (field > 0 ? field : 1) - format.bias - format.mantissa_bits;
  const float value = static_cast<float>(mantissa) * power_of_two(exponent);
  return negative ? -value : value;
}

/// The code of a number by the rules of ONNX's Cast. Out of range it becomes the largest number
/// where `saturate`, else infinity or, in types without one, NaN. In float8_e8m0fnu, numbers below
/// 2^-127, including 0, become 2^-127 where `saturate`, else NaN; the other types round to 0.
/// Float64 is rounded to float32 first, as in ONNX's reference.
constexpr std::uint8_t encode_float8(DType dtype, float x, bool saturate = true,
                                     Float8Rounding rounding = Float8Rounding::up) {
  using namespace float8;
  const Magnitude m = magnitude_of(x);
  if (dtype == DType::float8_e8m0fnu) return encode_power(m, saturate, rounding);
  const Float8Format format = float8_format(dtype);
  const int outside = saturate               ? format.largest
                      : format.infinity >= 0 ? format.infinity
                                             : format.nan;
  int code = 0;
  if (m.is_nan) {
    code = format.nan;
  } else if (m.is_infinite) {
    code = outside;
  } else if (m.mantissa != 0) {
    // Codes count on from one number to the next, also from one exponent to the next.
    const int least = 1 - format.bias;
    const int exponent = m.exponent > least ? m.exponent : least;
    const int shift = 23 - format.mantissa_bits + exponent - m.exponent;
    const auto steps = static_cast<int>(rounded_shift(m.mantissa, shift));
    code = ((exponent - least) << format.mantissa_bits) + steps;
    if (code > format.largest) code = outside;
  }
  const bool has_sign = format.signed_specials || (code != 0 && code != format.nan);
  return static_cast<std::uint8_t>(m.negative && has_sign ? code | 0x80 : code);
}

/// decode_float8 for every code.
const std::array<float, 256>& float8_values(DType dtype);

/// "up", "down" or "nearest", as ONNX names them; nothing for other names.
std::optional<Float8Rounding> float8_rounding(std::string_view name);

}  // namespace tandem
