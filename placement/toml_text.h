// Where values of a TOML file begin and end in its text, for edits that leave the rest as it is.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/config/run_config.h"

namespace tandem {

/// Offset of a line and column (code points, from 1); npos where the text has no such place.
std::size_t offset_of(std::string_view text, const Where& where);
/// One past the value that begins at `start`: a string, list, inline table or plain word.
std::size_t end_of_value(std::string_view text, std::size_t start);
/// The first character from `start` on that is neither space, line end nor part of a comment.
std::size_t skip_blank(std::string_view text, std::size_t start);
/// Offset of the first character of the line that holds `at`, and one past its line end.
std::size_t start_of_line(std::string_view text, std::size_t at);
std::size_t after_line(std::string_view text, std::size_t at);

}  // namespace tandem
