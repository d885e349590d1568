// Converts numbers to the bytes of a type and back, independently of the code under test.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/graph/half.h"
#include "engine/graph/types.h"

namespace tandem::testing {

/// Calls f with a value of the C++ type that stores one element.
template <class F>
void with_storage(DType dtype, const F& f) {
  switch (dtype) {
    case DType::float32:
      return f(float{});
    case DType::float64:
      return f(double{});
    case DType::float16:
    case DType::bfloat16:
    case DType::uint16:
      return f(std::uint16_t{});
    case DType::int16:
      return f(std::int16_t{});
    case DType::int8:
      return f(std::int8_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::uint32:
      return f(std::uint32_t{});
    case DType::uint64:
      return f(std::uint64_t{});
    case DType::uint8:
    case DType::boolean:
    case DType::float8_e4m3fn:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
      return f(std::uint8_t{});
  }
}

inline std::string bytes_of(DType dtype, const std::vector<double>& numbers) {
  std::string bytes;
  with_storage(dtype, [&](auto element) {
    for (const double number : numbers) {
      element = dtype == DType::float16
                    ? static_cast<decltype(element)>(float_to_half(static_cast<float>(number)))
                : dtype == DType::bfloat16
                    ? static_cast<decltype(element)>(float_to_bfloat16(static_cast<float>(number)))
                    : static_cast<decltype(element)>(number);
      bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
    }
  });
  return bytes;
}

inline std::vector<double> numbers_in(DType dtype, const std::string& bytes) {
  std::vector<double> numbers;
  with_storage(dtype, [&](auto element) {
    for (std::size_t at = 0; at + sizeof element <= bytes.size(); at += sizeof element) {
      std::memcpy(&element, bytes.data() + at, sizeof element);
      const auto bits = static_cast<std::uint16_t>(element);
      numbers.push_back(dtype == DType::float16    ? half_to_float(bits)
                        : dtype == DType::bfloat16 ? bfloat16_to_float(bits)
                                                   : static_cast<double>(element));
    }
  });
  return numbers;
}

}  // namespace tandem::testing
