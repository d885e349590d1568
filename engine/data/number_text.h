// Numbers of the data as messages show them.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

namespace tandem {

/// The shortest digits that read back to the number: as a float32 where it is one.
inline std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  char digits[32];
  const auto narrow = static_cast<float>(value);
  const bool is_narrow = static_cast<double>(narrow) == value;
  const auto end = is_narrow ? std::to_chars(digits, digits + sizeof digits, narrow)
                             : std::to_chars(digits, digits + sizeof digits, value);
  return {digits, end.ptr};
}

}  // namespace tandem
