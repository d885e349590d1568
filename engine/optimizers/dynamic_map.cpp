#include "engine/optimizers/dynamic_map.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace tandem {

std::array<float, 256> dynamic_map(StateForm form) {
  assert(form != StateForm::whole);
  const bool is_signed = form == StateForm::signed_bytes;
  std::array<float, 256> map{};
  std::size_t count = 0;
  map[count++] = 0;
  map[count++] = 1;
  for (int power = 0; power < 7; ++power) {
    const int parts = is_signed ? 1 << power : 2 << power;
    for (int part = 0; part < parts; ++part) {
      const double middle = 0.1 + 0.9 * (part + 0.5) / parts;
      const auto number = static_cast<float>(middle * std::pow(10.0, power - 6));
      map[count++] = number;
      if (is_signed) map[count++] = -number;
    }
  }
  assert(count == map.size());
  std::sort(map.begin(), map.end());
  return map;
}

DynamicCodes::DynamicCodes(StateForm form) : map_(dynamic_map(form)) {
  for (std::size_t code = 0; code + 1 < map_.size(); ++code)
    upto_[code] = (map_[code] + map_[code + 1]) / 2;
  upto_.back() = std::numeric_limits<float>::infinity();
  for (std::uint32_t top = 0; top < lowest_.size(); ++top) {
    const std::uint32_t bits = (top << 16) | (top >= 0x8000 ? 0xffff : 0);
    const float lowest = __builtin_bit_cast(float, bits);
    // The codes whose numbers end below it; NaN has the first.
    lowest_[top] = static_cast<std::uint8_t>(
        std::isnan(lowest) ? 0
                           : std::lower_bound(upto_.begin(), upto_.end(), lowest) - upto_.begin());
  }
}

const DynamicCodes& DynamicCodes::of(StateForm form) {
  static const DynamicCodes with_signs(StateForm::signed_bytes),
      positive(StateForm::positive_bytes);
  return form == StateForm::signed_bytes ? with_signs : positive;
}

void DynamicCodes::decode(const std::uint8_t* codes, float scale, float* numbers,
                          std::int64_t n) const {
  for (std::int64_t i = 0; i < n; ++i) numbers[i] = map_[codes[i]] * scale;
}

float DynamicCodes::encode(const float* numbers, std::uint8_t* codes, std::int64_t n) const {
  float scale = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float size = std::fabs(numbers[i]);
    scale = size > scale || size != size ? size : scale;
  }
  const float divisor = scale == 0 ? 1 : scale;
  for (std::int64_t i = 0; i < n; ++i) codes[i] = code(numbers[i] / divisor);
  return scale;
}

}  // namespace tandem
