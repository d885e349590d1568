#include "engine/formats/table_form.h"

#include <algorithm>
#include <set>

#include "engine/graph/text.h"

namespace tandem {
namespace {

constexpr std::size_t no_place = std::string_view::npos;
constexpr std::size_t most_rows = 50;

using Row = std::vector<std::string>;

/// The first rows that are not empty and whose end is in the text, by RFC 4180.
std::vector<Row> first_rows(std::string_view text, bool is_whole, char separator) {
  std::vector<Row> rows;
  Row row;
  std::string cell;
  bool is_quoted = false, was_quoted = false;
  const auto end_cell = [&] {
    row.push_back(std::move(cell));
    cell.clear();
    was_quoted = false;
  };
  const auto end_row = [&] {
    if (!cell.empty() && cell.back() == '\r') cell.pop_back();
    const bool is_empty = row.empty() && cell.empty() && !was_quoted;
    end_cell();
    if (!is_empty) rows.push_back(std::move(row));
    row.clear();
  };
  std::size_t i = 0;
  for (; i < text.size() && rows.size() < most_rows; ++i) {
    const char c = text[i];
    if (is_quoted) {
      const bool is_double = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (is_double) ++i;
      if (c == '"' && !is_double)
        is_quoted = false;
      else
        cell += c;
    } else if (c == '"' && cell.empty() && !was_quoted) {
      is_quoted = was_quoted = true;
    } else if (c == separator) {
      end_cell();
    } else if (c == '\n') {
      end_row();
    } else {
      cell += c;
    }
  }
  const bool has_rest = !row.empty() || !cell.empty() || was_quoted;
  if (i == text.size() && is_whole && has_rest && !is_quoted) end_row();
  return rows;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

/// The first rows as cut by one separator.
struct Cut {
  TableForm form;
  std::size_t cells = 0;  // in the first row
  bool is_even = false;   // all rows have as many, or one more after a header
  bool agrees = false;    // with the hints
};

/// Whether the first cells of the rows after a header are all different, and the last ones are not
/// all empty, as they are where each row ends in a separator.
bool is_index(const std::vector<Row>& rows) {
  if (rows.size() < 3 || rows[0].size() < 2) return false;
  std::set<std::string> firsts;
  bool has_last = false;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    firsts.insert(rows[i].front());
    has_last = has_last || !rows[i].back().empty();
  }
  return has_last && firsts.size() + 1 == rows.size();
}

Cut cut_by(char separator, std::string_view start, bool is_whole, const TableHints& hints) {
  Cut cut;
  cut.form.separator = separator;
  const std::vector<Row> rows = first_rows(start, is_whole, separator);
  if (rows.empty()) return cut;
  cut.cells = rows[0].size();
  const auto all_have = [&](std::size_t cells) {
    return std::all_of(rows.begin() + 1, rows.end(),
                       [&](const Row& row) { return row.size() == cells; });
  };
  cut.form.has_index = hints.has_header && all_have(cut.cells + 1) && is_index(rows);
  cut.is_even = cut.form.has_index || all_have(cut.cells);
  if (!hints.has_header) {
    cut.agrees = hints.columns > 0 && cut.cells == hints.columns;
    return cut;
  }
  const std::vector<std::string_view> cells(rows[0].begin(), rows[0].end());
  const std::vector<std::string> names = header_names(cells, cut.form);
  cut.agrees = !hints.names.empty() &&
               std::all_of(hints.names.begin(), hints.names.end(), [&](const std::string& name) {
                 return find_column(names, name) != no_place;
               });
  return cut;
}

}  // namespace

TableForm find_table_form(std::string_view start, bool is_whole, const TableHints& hints) {
  std::vector<Cut> cuts;
  for (const char separator : hints.separators)
    cuts.push_back(cut_by(separator, start, is_whole, hints));
  const auto best = [&](const auto& is_taken) -> const Cut* {
    const Cut* found = nullptr;
    for (const Cut& cut : cuts) {
      if (is_taken(cut) && (found == nullptr || cut.cells > found->cells)) found = &cut;
    }
    return found;
  };
  if (cuts[0].agrees) return cuts[0].form;
  if (const Cut* found = best([](const Cut& cut) { return cut.agrees; })) return found->form;
  const Cut* const even = best([](const Cut& cut) { return cut.is_even && cut.cells > 1; });
  const Cut* const any = best([](const Cut& cut) { return cut.cells > 1; });
  if (cuts[0].is_even && cuts[0].cells > 1) return cuts[0].form;
  if (even != nullptr) return even->form;
  return cuts[0].cells > 1 || any == nullptr ? cuts[0].form : any->form;
}

std::string separator_words(char separator) {
  switch (separator) {
    case ';':
      return "semicolons";
    case '\t':
      return "tabs";
    case '|':
      return "bars";
    default:
      return "commas";
  }
}

std::string name_of_unnamed(std::size_t column) { return "Unnamed: " + std::to_string(column); }

std::vector<std::string> header_names(const std::vector<std::string_view>& cells,
                                      const TableForm& form) {
  std::vector<std::string> names;
  if (form.has_index) names.push_back(name_of_unnamed(0));
  for (const std::string_view cell : cells) {
    const std::string_view name = trimmed(cell);
    names.push_back(name.empty() ? name_of_unnamed(names.size()) : std::string(name));
  }
  return names;
}

std::size_t find_column(const std::vector<std::string>& names, std::string_view name) {
  const auto exact = std::find(names.begin(), names.end(), name);
  if (exact != names.end()) return static_cast<std::size_t>(exact - names.begin());
  std::size_t found = no_place;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!same_but_for_case(trimmed(names[i]), trimmed(name))) continue;
    if (found != no_place) return no_place;
    found = i;
  }
  return found;
}

}  // namespace tandem
