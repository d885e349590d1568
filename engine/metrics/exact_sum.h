// A sum of doubles that loses nothing until the end: the same bits whatever the order of what is
// added.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tandem {

/// A fixed-point number as wide as the range of doubles. Infinities and NaN affect the sum as they
/// affect a double.
class ExactSum {
 public:
  ExactSum& operator+=(double x) {
    if (!std::isfinite(x)) {
      special_ += x;
      return *this;
    }
    const auto bits = std::bit_cast<std::uint64_t>(x);
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
    std::uint64_t exponent = (bits >> 52) & 0x7ff;  // the unit is 2^-1074
    if (exponent != 0) {
      mantissa |= std::uint64_t{1} << 52;
      --exponent;
    }
    const std::size_t first = exponent / 32;
    const std::uint64_t low = (mantissa & digits) << (exponent % 32);
    const std::uint64_t high = (mantissa >> 32) << (exponent % 32);
    const std::int64_t sign = x < 0 ? -1 : 1;
    limbs_[first] += sign * static_cast<std::int64_t>(low & digits);
    limbs_[first + 1] += sign * static_cast<std::int64_t>((low >> 32) + (high & digits));
    limbs_[first + 2] += sign * static_cast<std::int64_t>(high >> 32);
    if (++added_ == most_added) carry();
    return *this;
  }

  ExactSum& operator+=(const ExactSum& other) {
    ExactSum another = other;
    another.carry();
    carry();
    for (std::size_t i = 0; i < limbs_.size(); ++i) limbs_[i] += another.limbs_[i];
    special_ += other.special_;
    carry();
    return *this;
  }

  /// Within a unit of the last place.
  double value() const {
    if (special_ != 0) return special_;  // infinite or NaN
    ExactSum sum = *this;
    sum.carry();
    const bool is_negative = sum.limbs_.back() < 0;
    if (is_negative) {
      for (std::int64_t& limb : sum.limbs_) limb = -limb;
      sum.carry();
    }
    std::size_t top = sum.limbs_.size() - 1;
    while (top > 0 && sum.limbs_[top] == 0) --top;
    double result = 0;  // the four highest limbs: 97 bits at least, lowest limb first
    for (std::size_t i = top < 3 ? 0 : top - 3; i <= top; ++i) {
      result += std::ldexp(static_cast<double>(sum.limbs_[i]), static_cast<int>(32 * i) - 1074);
    }
    return is_negative ? -result : result;
  }

 private:
  static constexpr std::uint64_t digits = 0xffffffff;
  /// Each addition changes a limb by less than 2^33.
  static constexpr std::int64_t most_added = std::int64_t{1} << 28;

  /// All limbs but the last get 0 to 2^32 - 1; the last one has the sign.
  void carry() {
    for (std::size_t i = 0; i + 1 < limbs_.size(); ++i) {
      const std::int64_t up = limbs_[i] >> 32;
      limbs_[i] -= up * (std::int64_t{1} << 32);
      limbs_[i + 1] += up;
    }
    added_ = 0;
  }

  std::array<std::int64_t, 68> limbs_{};  // number i counts 2^(32 i - 1074)
  std::int64_t added_ = 0;                // since the last carry
  double special_ = 0;                    // the sum of all that is not finite
};

}  // namespace tandem
