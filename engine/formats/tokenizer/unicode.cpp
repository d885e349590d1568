// Unicode by utf8proc.
#include "engine/formats/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "engine/formats/tokenizer/utf8.h"

namespace tandem {

TextProblem unicode_problem() { return {}; }

std::string normalized(const std::string& text, UnicodeForm form) {
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii) return text;
  int options = UTF8PROC_STABLE;
  const bool composes = form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
  options |= composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == UnicodeForm::nfkc || form == UnicodeForm::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &made, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (bytes < 0) throw std::invalid_argument(utf8proc_errmsg(bytes));
  return {reinterpret_cast<const char*>(made), static_cast<std::size_t>(bytes)};
}

char32_t lower(char32_t character) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

void append_lower(std::string& to, char32_t character) {
  if (character == 0x130) {  // a capital I with a dot
    to += "i\xcc\x87";
  } else {
    append_character(to, lower(character));
  }
}

const char* category(char32_t character) {
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(character));
}

bool is_word_character(char32_t c) {
  if (c < 0x80) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  const std::string_view of = category(c);
  if (of[0] == 'L' || of[0] == 'M' || of == "Nd" || of == "Nl" || of == "Pc") return true;
  // The joiners, and letters in circles and boxes.
  return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
         (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
         (c >= 0x1f170 && c <= 0x1f189);
}

}  // namespace tandem
