// Numbers of things in messages.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace tandem {

/// "1 operator", "2 operators".
template <std::integral Count>
std::string count_text(Count count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace tandem
