// Numbers in cells of text tables: how they are written, which cells count as missing, how messages
// show cells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/config/data_config.h"

namespace tandem {

/// Whether a cell of a column of numbers means "missing": NA, N/A, NaN, None, null, nil, #N/A,
/// <NA>, -, ?, . and the like, or nothing but spaces.
bool is_usual_missing(std::string_view cell);

/// A cell as std::from_chars takes numbers: without spaces around it, marks of thousands and a plus
/// sign, and with a decimal point. Unset where the marks stand elsewhere than in numbers. `buffer`
/// holds what had to be changed.
std::optional<std::string_view> plain_number(std::string_view cell, const CellText& cells,
                                             std::string& buffer);

/// Infinity only for a number that is too large: 1e400. true and false, in any of three spellings,
/// are 1 and 0.
std::optional<double> read_double(std::string_view cell, const CellText& cells,
                                  std::string& buffer);
/// Also takes whole numbers that are written with a point: 5.0.
template <class T>
std::optional<T> read_whole(std::string_view cell, const CellText& cells, std::string& buffer);

/// In quotes, for messages: long text is cut in front of a character of UTF-8, and printable().
std::string shown_cell(std::string_view text);

/// What makes UTF-8 of a table in which bytes are not.
inline constexpr const char* remedy_of_bytes =
    "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW converts a file of Windows or Latin-1";

}  // namespace tandem
