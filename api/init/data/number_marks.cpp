#include "api/init/data/number_marks.h"

#include <algorithm>

#include "api/init/fields.h"
#include "engine/data/cells/cell_number.h"

namespace tandem::api {
namespace {

constexpr std::int64_t most_rows = 1000;

/// The first form is the plain one. "3,14" in a table of points is read by the function `decimal`.
std::vector<CellText> all_forms() {
  return {{DecimalMark::point, ThousandsMark::none, {}},
          {DecimalMark::comma, ThousandsMark::none, {}},
          {DecimalMark::point, ThousandsMark::comma, {}},
          {DecimalMark::comma, ThousandsMark::point, {}},
          {DecimalMark::point, ThousandsMark::space, {}},
          {DecimalMark::comma, ThousandsMark::space, {}}};
}

/// A column under each form.
struct FormCounts {
  std::int64_t cells = 0, with_either = 0;  // with_either: plain, or with a decimal comma
  std::vector<std::int64_t> fits;           // by form
  std::string example;                      // one that is no plain number

  /// Whether the cells are numbers, except for up to one in twenty.
  bool are(std::int64_t count) const { return cells > 0 && count * 20 >= cells * 19; }
};

std::vector<CellText> possible_forms(const SaidOfData& said) {
  std::vector<CellText> forms = all_forms();
  std::erase_if(forms, [&](const CellText& form) {
    return (said.decimal && form.decimal != *said.decimal) ||
           (said.thousands && form.thousands != *said.thousands);
  });
  if (forms.empty()) forms.push_back({});
  if (said.decimal) forms.front().decimal = *said.decimal;
  if (said.thousands) forms.front().thousands = *said.thousands;
  return forms;
}

std::size_t place_of(const std::vector<CellText>& forms, DecimalMark decimal,
                     ThousandsMark thousands) {
  const auto found = std::find_if(forms.begin(), forms.end(), [&](const CellText& form) {
    return form.decimal == decimal && form.thousands == thousands;
  });
  return static_cast<std::size_t>(found - forms.begin());
}

std::vector<FormCounts> count_forms(const std::vector<CellText>& forms, std::size_t columns,
                                    FunctionRef<bool(std::string_view cell)> is_missing,
                                    EachRow each_row) {
  std::vector<FormCounts> looks(columns,
                                {.fits = std::vector<std::int64_t>(forms.size()), .example = {}});
  const CellText commas{DecimalMark::comma, ThousandsMark::none, {}};
  std::string buffer;
  std::int64_t rows = 0;
  each_row([&](const std::vector<std::string_view>& row) {
    if (++rows > most_rows) return;
    for (std::size_t c = 0; c < columns; ++c) {
      if (row[c].empty() || is_usual_missing(row[c]) || is_missing(row[c])) continue;
      FormCounts& look = looks[c];
      ++look.cells;
      for (std::size_t f = 0; f < forms.size(); ++f)
        look.fits[f] += read_double(row[c], forms[f], buffer) ? 1 : 0;
      const bool is_plain = read_double(row[c], {}, buffer).has_value();
      look.with_either += is_plain || read_double(row[c], commas, buffer) ? 1 : 0;
      if (look.example.empty() && !is_plain) look.example = row[c];
    }
  });
  return looks;
}

}  // namespace

NumberMarks find_number_marks(const SaidOfData& said, const std::vector<ArrayFacts>& columns,
                              bool by_commas, FunctionRef<bool(std::string_view cell)> is_missing,
                              EachRow each_row) {
  const std::vector<CellText> forms = possible_forms(said);
  const std::vector<FormCounts> looks = count_forms(forms, columns.size(), is_missing, each_row);
  const auto count = [&](std::size_t f) {
    return std::count_if(looks.begin(), looks.end(),
                         [&](const FormCounts& column) { return column.are(column.fits[f]); });
  };
  std::size_t best = 0;
  for (std::size_t f = 1; f < forms.size(); ++f) {
    if (count(f) > count(best)) best = f;
  }
  // "1,234" may be a fraction or a thousand: where commas separate cells it is a thousand.
  const std::size_t fractions = place_of(forms, DecimalMark::comma, ThousandsMark::none),
                    groups = place_of(forms, DecimalMark::point, ThousandsMark::comma);
  if (best == fractions && by_commas && groups < forms.size() && count(groups) == count(fractions))
    best = groups;
  // Columns with points and columns with commas: the table has points, and a function reads both.
  const auto has_either = [&](const FormCounts& column) {
    return column.are(column.with_either) && !column.are(column.fits[best]);
  };
  const bool is_simple = forms[best].thousands == ThousandsMark::none && !said.thousands;
  const bool are_both =
      is_simple && !said.decimal && std::any_of(looks.begin(), looks.end(), has_either);
  if (are_both) best = 0;
  NumberMarks found{forms[best].decimal, forms[best].thousands, "", {}, {}};
  const bool is_plain =
      found.decimal == DecimalMark::point && found.thousands == ThousandsMark::none;
  for (std::size_t c = 0; c < looks.size(); ++c) {
    const FormCounts& look = looks[c];
    const bool fits = look.are(look.fits[best]);
    found.has_commas.push_back(are_both && has_either(look));
    if (!is_plain && fits && found.why.empty() && !look.example.empty())
      found.why = "as numbers are written: " + shown_text(look.example);
    if (found.has_commas.back()) {
      found.notes.push_back("\"" + columns[c].name + "\" has decimal commas, " +
                            shown_text(look.example) +
                            ", and other columns have points: decimal(',') in `as` reads both");
    } else if (!fits && std::any_of(look.fits.begin(), look.fits.end(),
                                    [&](std::int64_t count) { return look.are(count); })) {
      found.notes.push_back("\"" + columns[c].name +
                            "\" counts as text: its numbers are written as " +
                            shown_text(look.example) +
                            ", those of other columns are not; write them alike in the file");
    }
  }
  return found;
}

}  // namespace tandem::api
