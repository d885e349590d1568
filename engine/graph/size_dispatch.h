// Calls with an unsigned integer of as many bytes as an element has: for what only moves elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem {

/// f(integer of `bytes` bytes): 1, 2, 4 or 8.
template <class F>
auto with_size(std::size_t bytes, F f) {
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

}  // namespace tandem
