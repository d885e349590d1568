// What is still open where TOML cannot be read any further: a bracket or a quote.
#pragma once

#include <optional>
#include <string_view>

namespace tandem {

/// The innermost one, with its place from 1 (columns in bytes).
struct OpenBracket {
  char bracket = 0;  // [ { " or '
  int line = 0, column = 0;
};

/// The bracket or quote that is still open before this place of the text; nothing where all are
/// closed. Text in strings and comments does not count.
std::optional<OpenBracket> open_bracket(std::string_view text, int line, int column);

}  // namespace tandem
