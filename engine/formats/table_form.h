// The form of a delimited file, guessed from its first rows: what separates its cells, and whether
// rows begin with an index that the header does not name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// The separators that are looked for, best first: comma, semicolon, tab, bar.
inline constexpr std::string_view known_separators = ",;\t|";

/// What is known about a file before it is read.
struct TableHints {
  std::string separators{known_separators};  // possible ones, at least one
  bool has_header = true;
  std::vector<std::string> names;  // the columns that are needed
  std::size_t columns = 0;         // in each row; 0: unknown
};

struct TableForm {
  char separator = ',';
  bool has_index = false;  // rows have a cell in front that the header lacks
};

/// The form that the first bytes of a file show, after a byte order mark; `is_whole`: they are the
/// whole file. Takes the first separator if it agrees with the hints, else another one that does;
/// without hints the one that cuts the first rows into the same number of cells, above one.
TableForm find_table_form(std::string_view start, bool is_whole, const TableHints& hints);

/// "commas", "semicolons", "tabs" or "bars".
std::string separator_words(char separator);

/// As pandas names a column without a name: "Unnamed: 0".
std::string name_of_unnamed(std::size_t column);
/// The names in a header, without spaces around them; those that it lacks are made up.
std::vector<std::string> header_names(const std::vector<std::string_view>& cells,
                                      const TableForm& form);

/// Where a column of this name is: the one that is called so, or else the only one that differs in
/// only the case of letters; npos where there is none.
std::size_t find_column(const std::vector<std::string>& names, std::string_view name);

}  // namespace tandem
