#include "engine/data/cells/number_remedy.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "engine/data/cells/cell_number.h"
#include "engine/data/cells/dates.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

struct Marks {
  DecimalMark decimal;
  ThousandsMark thousands;
  const char* keys;
};

std::optional<double> number_with(std::string_view cell, const Marks& marks) {
  std::string buffer;
  return read_double(cell, {marks.decimal, marks.thousands, {}}, buffer);
}

/// Marks that read the cell; of several only those that are equally likely.
std::vector<Marks> marks_of(std::string_view cell, const CellText& cells) {
  constexpr Marks point{DecimalMark::point, ThousandsMark::none, "data.decimal = \".\""};
  constexpr Marks comma{DecimalMark::comma, ThousandsMark::none, "data.decimal = \",\""};
  constexpr Marks groups{DecimalMark::point, ThousandsMark::comma, "data.thousands = \",\""};
  constexpr Marks others[] = {
      {DecimalMark::comma, ThousandsMark::point, "data.decimal = \",\" and data.thousands = \".\""},
      {DecimalMark::comma, ThousandsMark::space,
       "data.decimal = \",\" and data.thousands = \"space\""},
      {DecimalMark::point, ThousandsMark::space, "data.thousands = \"space\""},
      {DecimalMark::point, ThousandsMark::underscore, "data.thousands = \"_\""}};
  const bool is_point = cells.decimal == DecimalMark::point;
  const bool has_comma = cell.find(',') != std::string_view::npos;
  if (!is_point && number_with(cell, point)) return {point};
  std::vector<Marks> found;
  if (is_point && has_comma && number_with(cell, comma)) found.push_back(comma);
  if (cells.thousands == ThousandsMark::none && has_comma && number_with(cell, groups))
    found.push_back(groups);
  for (const Marks& marks : others) {
    if (found.empty() && number_with(cell, marks)) found.push_back(marks);
  }
  return found;
}

/// "classes('No', 'Yes')" for either of two words of a truth, in their letters; "" of others.
std::string classes_of(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::pair<std::string_view, std::string_view> pairs[] = {
      {"no", "yes"}, {"n", "y"}, {"f", "t"}, {"off", "on"}};
  for (const auto& [first, second] : pairs) {
    if (lower != first && lower != second) continue;
    const bool is_upper = text[0] >= 'A' && text[0] <= 'Z';
    const auto as_written = [&](std::string_view word) {
      std::string result(word);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const bool is_capital = is_upper && (i == 0 || (text.size() > 1 && text[1] < 'a'));
        if (is_capital) result[i] = static_cast<char>(result[i] - 'a' + 'A');
      }
      return result;
    };
    return "classes('" + as_written(first) + "', '" + as_written(second) + "')";
  }
  return "";
}

/// The number in front of a word, as in "49 years"; "" where there is none.
std::string_view number_before_unit(std::string_view text, const CellText& cells) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789.,+-"), text.size());
  const std::string_view number = text.substr(0, end), unit = trimmed(text.substr(end));
  std::string buffer;
  const bool is_unit = !unit.empty() && unit.find_first_of("0123456789:/") == unit.npos;
  return is_unit && read_double(number, cells, buffer) ? number : std::string_view();
}

}  // namespace

std::string remedy_of_marks(std::string_view cell, const CellText& cells, const FractionCell& other,
                            bool may_have_function) {
  const std::string_view text = trimmed(cell);
  if (text.find_first_not_of(" \t\r\n") == text.npos) return "";
  if (is_usual_missing(text))
    return "data.missing leaves this spelling out: name it there, or set data.missing = [ \"" +
           std::string(text) + "\" ]";
  std::string buffer;
  if (read_double(text, cells, buffer)) return "";  // a number, but not one that is taken
  std::vector<Marks> found = marks_of(text, cells);
  if (found.empty()) return "";
  const Marks first = found[0];
  if (!other.text.empty()) {
    const std::optional<double> as_read = read_double(other.text, cells, buffer);
    std::erase_if(found, [&](const Marks& m) { return number_with(other.text, m) != as_read; });
  }
  const bool is_decimal = first.thousands == ThousandsMark::none;
  if (found.empty() && is_decimal && may_have_function) {
    return fmt::format(
        "`{}` has {}, which {} does not read: as = [ \"decimal('{}')\", … ] reads both",
        other.column, shown_cell(other.text), first.keys,
        first.decimal == DecimalMark::comma ? ',' : '.');
  }
  if (found.empty()) {
    return fmt::format(
        "`{}` has {}, which {} does not read: write the numbers of all columns alike "
        "in the file",
        other.column, shown_cell(other.text), first.keys);
  }
  if (found.size() == 1) return found[0].keys;
  return fmt::format("{} if the comma is before a fraction, {} if it is between thousands",
                     found[0].keys, found[1].keys);
}

std::string remedy_of_number(std::string_view cell, const CellText& cells,
                             const FractionCell& other) {
  const std::string_view text = trimmed(cell);
  if (text.find_first_not_of(" \t\r\n") == text.npos) return "";
  std::string buffer;
  if (const std::string keys = remedy_of_marks(text, cells, other); !keys.empty()) return keys;
  if (read_double(text, cells, buffer)) return "";
  if (const std::string classes = classes_of(text); !classes.empty())
    return "as = [ \"" + classes + "\" ] makes 0 and 1 of these words";
  if (read_date(text)) return "as = [ \"unix_time\" ] makes seconds since 1970 of a date";
  if (text.back() == '%')
    return "take the percent sign out of the file: 12.5 instead of 12.5%, in all rows";
  for (const std::string_view sign : {"$", "€", "£", "¥", "₹", "CHF", "EUR", "USD", "GBP"}) {
    if (text.starts_with(sign) || text.ends_with(sign))
      return "take the currency out of the file: 9.99 instead of " + std::string(text);
  }
  if (const std::string_view number = number_before_unit(text, cells); !number.empty()) {
    return fmt::format("take the unit out of the file: {} instead of {}, in all rows", number,
                       shown_cell(text));
  }
  return "";
}

}  // namespace tandem
