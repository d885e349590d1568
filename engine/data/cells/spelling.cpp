#include "engine/data/cells/spelling.h"

#include <algorithm>

#include "engine/formats/tokenizer/unicode.h"
#include "engine/formats/tokenizer/utf8.h"

namespace tandem {
namespace {

constexpr std::string_view white_space = " \t\r\n\v\f";
constexpr std::string_view no_break_space = "\xc2\xa0", narrow_no_break_space = "\xe2\x80\xaf";

bool knows_unicode() { return std::string_view(unicode_problem().what).empty(); }

}  // namespace

std::string_view without_blanks(std::string_view text) {
  for (std::size_t size = text.size() + 1; text.size() < size && !text.empty();) {
    size = text.size();
    const std::size_t first = std::min(text.find_first_not_of(white_space), text.size());
    text.remove_prefix(first);
    text = text.substr(0, text.find_last_not_of(white_space) + 1);
    for (const std::string_view wide : {no_break_space, narrow_no_break_space}) {
      if (text.starts_with(wide)) text.remove_prefix(wide.size());
      if (text.ends_with(wide)) text.remove_suffix(wide.size());
    }
  }
  return text;
}

std::string lower_text(std::string_view text) {
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii || !knows_unicode() || invalid_utf8(text) != std::string_view::npos) {
    std::string lower(text);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower;
  }
  std::string lower;
  for (std::size_t at = 0; at < text.size();) append_lower(lower, next_character(text, at));
  return lower;
}

std::string spelling_function(std::string_view word, std::string_view other) {
  if (word == other || other.empty()) return "";
  if (without_blanks(word) == other) return "trim";
  return lower_text(word) == other ? "lower" : "";
}

}  // namespace tandem
