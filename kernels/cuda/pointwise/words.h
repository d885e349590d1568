// The types that stand for so many bytes where elements are only moved.
#pragma once

#include <vector_types.h>

#include <cstdint>

namespace tandem::cuda {

/// Calls f with a value of 1, 2, 4 or 8 bytes.
template <class F>
decltype(auto) with_element_of(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

/// The same, or with one of 16 bytes.
template <class F>
decltype(auto) with_word(int bytes, F&& f) {
  if (bytes > 8) return f(uint4{});
  return with_element_of(static_cast<std::size_t>(bytes), f);
}

}  // namespace tandem::cuda
