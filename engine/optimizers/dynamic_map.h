// The numbers that 8-bit states stand for: bitsandbytes' dynamic map (Dettmers, arXiv:1511.04561).
#pragma once

#include <array>
#include <cstdint>

#include "engine/optimizers/formula.h"

namespace tandem {

/// In ascending order, at most 1: 0, 1, and for each of seven powers of ten the middles of equal
/// parts of [0.1, 1] times it, the more of them the larger the power; with signs half as many, and
/// their negatives.
std::array<float, 256> dynamic_map(StateForm form);

/// Finds the nearest of the map's numbers to one from -1 to 1, the lower one of two.
class DynamicCodes {
 public:
  explicit DynamicCodes(StateForm form);
  /// With the map; addresses stay valid.
  static const DynamicCodes& of(StateForm form);

  float number(std::uint8_t code) const { return map_[code]; }
  std::uint8_t code(float x) const {
    const std::uint8_t lower = lowest_[__builtin_bit_cast(std::uint32_t, x) >> 16];
    return static_cast<std::uint8_t>(lower + (x > upto_[lower]));
  }

  /// numbers[i] = scale * number(codes[i])
  void decode(const std::uint8_t* codes, float scale, float* numbers, std::int64_t n) const;
  /// The codes of numbers / scale, and the scale: the largest absolute value. NaN where one is NaN.
  float encode(const float* numbers, std::uint8_t* codes, std::int64_t n) const;

 private:
  std::array<float, 256> map_;
  std::array<float, 256> upto_;  // the largest number whose code is this one
  /// By the upper half of a float's bits: the code of the lowest float that has it; of the highest
  /// it is at most one more.
  std::array<std::uint8_t, 1 << 16> lowest_;
};

}  // namespace tandem
