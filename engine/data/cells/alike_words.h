// Words of a column that mean the same and are spelt in several ways.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/data/cells/spelling.h"

namespace tandem {

struct CountedWord {
  std::string_view word;
  std::int64_t times = 0;
};

/// The words of a column for which a more frequent spelling is in the column, too.
struct AlikeWords {
  std::string word, other;  // the most frequent of them, and its more frequent spelling
  std::int64_t times = 0, other_times = 0;
  std::int64_t words = 0;  // how many there are
};

/// Words that differ only in blanks around them; nothing where none do, or where there are more
/// than are compared.
std::optional<AlikeWords> alike_but_for_blanks(std::span<const CountedWord> words);
/// Words that, without blanks around them, differ only in the case of letters.
std::optional<AlikeWords> alike_but_for_case(std::span<const CountedWord> words);

/// `"red " (3 times) and "red" (120) differ only in blanks around them`, `what` being the end, and
/// how many more such words there are.
std::string alike_text(const AlikeWords& alike, std::string_view what);
inline constexpr std::string_view only_in_blanks = "differ only in blanks around them";
inline constexpr std::string_view only_in_case = "differ only in upper and lower case";

}  // namespace tandem
