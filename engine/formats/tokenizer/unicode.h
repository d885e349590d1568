// Unicode's properties of characters. Where a build lacks utf8proc, no_unicode.cpp replaces
// unicode.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

/// "" where this build knows Unicode and patterns; else what is missing and how to get it.
struct TextProblem {
  const char* what = "";
  const char* fix = "";
};
TextProblem unicode_problem();
TextProblem pattern_problem();

enum class UnicodeForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// Normalizes valid UTF-8.
std::string normalized(const std::string& text, UnicodeForm form);
/// Maps one character to one; only U+0130 has two in lower case, which `append_lower` handles.
char32_t lower(char32_t character);
void append_lower(std::string& to, char32_t character);

/// Two letters of the general category, "Lu".
const char* category(char32_t character);

// As the functions of HF's tokenizers have them.
inline bool is_white_space(char32_t c) {  // the property White_Space
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}
inline bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2f) || (c >= 0x3a && c <= 0x40) || (c >= 0x5b && c <= 0x60) ||
         (c >= 0x7b && c <= 0x7e);
}
/// Those of ASCII, which Unicode calls symbols in part, and the category P.
inline bool is_punctuation(char32_t c) {
  return c < 0x80 ? is_ascii_punctuation(c) : category(c)[0] == 'P';
}
inline bool is_number(char32_t c) {  // N
  return c < 0x80 ? c >= '0' && c <= '9' : category(c)[0] == 'N';
}
inline bool is_mark(char32_t c) {  // M
  return c >= 0x80 && category(c)[0] == 'M';
}
inline bool is_nonspacing_mark(char32_t c) {  // Mn
  return c >= 0x80 && category(c)[0] == 'M' && category(c)[1] == 'n';
}
/// \w of Unicode's regular expressions: letters, marks, decimal digits, connectors.
bool is_word_character(char32_t c);

}  // namespace tandem
