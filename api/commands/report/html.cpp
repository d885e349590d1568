#include "api/commands/report/html.h"

#include <cmath>

#include <fmt/format.h>

namespace tandem::api {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

/// Number of bytes of the UTF-8 character that a text begins with; 0: invalid.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const bool is_short = first == 0xE0 && byte(1) < 0xA0;
    const bool is_surrogate = first == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !is_short && !is_surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool is_short = first == 0xF0 && byte(1) < 0x90;
    const bool is_beyond = first == 0xF4 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !is_short && !is_beyond ? 4 : 0;
  }
  return 0;
}

/// Calls `take` with each character; with U+FFFD for invalid bytes.
template <class Take>
void each_character(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool is_control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
    take(bytes == 0 || is_control ? replacement : text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
}

/// "1234567" as "1,234,567".
std::string grouped(std::string digits) {
  const std::size_t start = digits.starts_with("-") ? 1 : 0;
  for (std::size_t at = digits.size(); at > start + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace

std::string html(std::string_view text) {
  std::string safe;
  each_character(text, [&](std::string_view character) {
    if (character == "&")
      safe += "&amp;";
    else if (character == "<")
      safe += "&lt;";
    else if (character == ">")
      safe += "&gt;";
    else if (character == "\"")
      safe += "&quot;";
    else if (character == "'")
      safe += "&#39;";
    else
      safe += character;
  });
  return safe;
}

std::string script_text(std::string_view text) {
  std::string safe = "\"";
  each_character(text, [&](std::string_view character) {
    const char c = character.front();
    const bool is_markup = c == '<' || c == '>' || c == '&' || c == '\n' || c == '\t';
    if (is_markup)
      safe += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else if (c == '"' || c == '\\')
      safe += std::string("\\") + c;
    else
      safe += character;
  });
  return safe + "\"";
}

std::string script_number(double value) {
  if (!std::isfinite(value)) return "null";
  // Whole numbers, such as steps or bytes, keep all their digits.
  const bool is_whole = value == std::round(value) && std::abs(value) < 1e15;
  return is_whole ? fmt::format("{:.0f}", value) : fmt::format("{:.7g}", value);
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (value == std::round(value) && size < 1e15) return grouped(fmt::format("{:.0f}", value));
  if (size >= std::pow(10, digits) && size < 1e15) return grouped(fmt::format("{:.0f}", value));
  return fmt::format("{:.{}g}", value, digits);
}

std::string bytes_text_of(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; std::abs(bytes) >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, units[unit]);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "–";
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace tandem::api
