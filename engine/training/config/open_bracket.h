// What is still open where TOML cannot be read on: a bracket or a quote.
#pragma once

#include <optional>
#include <string_view>

namespace tandem {

/// The innermost one, with its place from 1 (columns in bytes).
struct OpenBracket {
  char bracket = 0;  // [ { " or '
  int line = 0, column = 0;
};

/// Of what lies before this place of the text; nothing where all is closed. Text in strings and
/// comments does not count.
std::optional<OpenBracket> open_bracket(std::string_view text, int line, int column);

}  // namespace tandem
