#include "engine/formats/tokenizer/utf8.h"

#include <algorithm>

namespace tandem {
namespace {

/// Bytes of the character at `at`; 0 where there is none, and then `bad` becomes how many bytes
/// look like its beginning, at least 1.
std::size_t valid_bytes(std::string_view text, std::size_t at, std::size_t& bad) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  bad = 1;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = character_bytes(text[at]);
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= text.size()) return 0;
    unsigned char least = 0x80, most = 0xbf;
    if (i == 1 && first == 0xe0) least = 0xa0;
    if (i == 1 && first == 0xed) most = 0x9f;
    if (i == 1 && first == 0xf0) least = 0x90;
    if (i == 1 && first == 0xf4) most = 0x8f;
    if (byte(at + i) < least || byte(at + i) > most) return 0;
    bad = i + 1;
  }
  return length;
}

}  // namespace

std::size_t invalid_utf8(std::string_view text) {
  std::size_t bad = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = valid_bytes(text, at, bad);
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

char32_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return next_character(text, at);
}

void append_character(std::string& to, char32_t character) {
  const auto put = [&](char32_t byte) { to += static_cast<char>(byte); };
  if (character < 0x80) return put(character);
  if (character < 0x800) {
    put(0xc0 | character >> 6);
  } else {
    if (character < 0x10000) {
      put(0xe0 | character >> 12);
    } else {
      put(0xf0 | character >> 18);
      put(0x80 | (character >> 12 & 0x3f));
    }
    put(0x80 | (character >> 6 & 0x3f));
  }
  put(0x80 | (character & 0x3f));
}

std::string with_replacements(std::string_view bytes) {
  std::string text;
  std::size_t bad = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = valid_bytes(bytes, at, bad);
    if (length > 0) {
      text += bytes.substr(at, length);
    } else {
      text += "\xef\xbf\xbd";
    }
    at += length > 0 ? length : bad;
  }
  return text;
}

std::string printable(std::string_view text, std::string_view kept) {
  constexpr char digits[] = "0123456789abcdef";
  const auto steers = [&](char32_t c) {
    if (c < 0x80 && kept.find(static_cast<char>(c)) != std::string_view::npos) return false;
    const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    return is_control || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  };
  std::string shown;
  std::size_t bad = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = valid_bytes(text, at, bad);
    std::size_t behind = at;
    if (bytes > 0 && !steers(next_character(text, behind))) {
      shown += text.substr(at, bytes);
      at += bytes;
      continue;
    }
    for (const std::size_t end = at + std::max<std::size_t>(bytes, 1); at < end; ++at) {
      const auto byte = static_cast<unsigned char>(text[at]);
      shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return shown;
}

}  // namespace tandem
