// UTF-8, character by character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

/// Where the first byte is that belongs to no character; npos where all do. Surrogates, overlong
/// forms and what is above U+10FFFF are no characters.
std::size_t invalid_utf8(std::string_view text);

/// The character at `at`, which advances to after it. The text is valid.
inline char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  char32_t c = first & (0x3fu >> more);
  for (int i = 0; i < more; ++i) c = c << 6 | (byte(at++) & 0x3f);
  return c;
}
/// Bytes of the character that begins with this one.
inline std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
}
/// The last character of a text that is not empty.
char32_t last_character(std::string_view text);

void append_character(std::string& to, char32_t character);

/// The bytes as text: what is no character becomes U+FFFD, one for the longest beginning of one.
std::string with_replacements(std::string_view bytes);

/// The text for a terminal, which it must not steer: control characters other than `kept`,
/// characters that change the direction of writing, and bytes that are no UTF-8 become \xNN.
std::string printable(std::string_view text, std::string_view kept = "");

}  // namespace tandem
