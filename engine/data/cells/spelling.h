// Spellings of a word: blanks around it, capital letters.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

/// The text without white space at its ends; no-break spaces, which spreadsheets write, are white
/// space, too.
std::string_view without_blanks(std::string_view text);

/// The text in lower case, letter by letter as Unicode has it. Bytes that are no UTF-8 stay, and in
/// a build without utf8proc so do letters beyond ASCII.
std::string lower_text(std::string_view text);

/// The function of a field, "trim" or "lower", by which `word` becomes `other`; "" where none does.
std::string spelling_function(std::string_view word, std::string_view other);

/// Which spellings a field takes as one.
struct Spelling {
  bool trims = false;   // without blanks
  bool lowers = false;  // in lower case
  bool operator==(const Spelling&) const = default;

  /// `buffer` holds the result where it is not a part of `text`.
  std::string_view operator()(std::string_view text, std::string& buffer) const {
    if (trims) text = without_blanks(text);
    if (!lowers) return text;
    buffer = lower_text(text);
    return buffer;
  }
};

}  // namespace tandem
