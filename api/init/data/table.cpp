// Text tables with a header: csv and tsv.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "api/init/data/column_texts.h"
#include "api/init/data/data_look.h"
#include "api/init/data/number_marks.h"
#include "api/init/data/table_arrays.h"
#include "api/init/fields.h"
#include "engine/config/keys/config_value.h"
#include "engine/config/keys/key_forms.h"
#include "engine/data/cells/cell_number.h"
#include "engine/data/cells/dates.h"
#include "engine/data/cells/spelling.h"
#include "engine/formats/delimited.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api::looks {
namespace {

constexpr std::size_t most_columns = 1 << 16;

bool takes_csv(const std::string& path) { return has_ending(path, {".csv"}); }
bool takes_tsv(const std::string& path) { return has_ending(path, {".tsv"}); }

/// The format of a table's files, as far as it was found out.
struct Opening {
  bool is_csv = true;
  CellText cells;

  DelimitedReader reader(const std::string& path) const {
    DelimitedReader reader(path, is_csv ? ',' : '\t', is_csv);
    if (is_csv) reader.find_form({});
    return reader;
  }
};

/// Counts of a column besides its facts.
struct ColumnLook {
  EachOnce once;
  std::int64_t missing_words = 0;   // NA and similar, which are ordinary words in a column of words
  std::set<std::string> spellings;  // spellings of those missing words
  std::int64_t dates = 0, others = 0;  // cells that are no numbers
  Numbers times;                       // dates as seconds since 1970
};

TensorType type_of_column(const ArrayFacts& column) {
  const bool is_whole = column.numbers.whole && !column.is_text && column.made_by.empty();
  return {is_whole ? DType::int64 : DType::float32, {}};
}

bool has_point(std::string_view cell, const CellText& cells) {
  std::string buffer;
  const std::optional<std::string_view> number = plain_number(cell, cells, buffer);
  const bool has_digits = cell.find_first_of("0123456789") != std::string_view::npos;
  return number && has_digits && number->find_first_of(".eE") != std::string_view::npos;
}

/// Whether the cell is one of the given spellings of an empty field.
bool is_listed(std::string_view cell, const CellText& cells) {
  return cells.missing &&
         std::any_of(cells.missing->begin(), cells.missing->end(),
                     [&](const std::string& word) { return trimmed(word) == trimmed(cell); });
}

void add_cell(std::string_view cell, const RowPlace& place, const CellText& cells,
              ArrayFacts& column, ColumnLook& look) {
  std::string buffer;
  ++column.rows;
  if (cell.empty() || is_listed(cell, cells)) {
    ++column.missing;
  } else if (const auto x = read_double(cell, cells, buffer)) {
    column.numbers.add(*x);
    column.has_points = column.has_points || has_point(cell, cells);
  } else if (!cells.missing && is_usual_missing(cell)) {
    ++look.missing_words;
    look.spellings.emplace(trimmed(cell));
  } else {
    if (!column.is_text) column.first_text = text_in_row(cell, place);
    column.is_text = true;
    const std::optional<DateTime> date = read_date(cell);
    if (date) look.times.add(date->seconds);
    ++(date ? look.dates : look.others);
  }
}

void add_cells(const std::vector<std::string_view>& row, const RowPlace& place,
               const CellText& cells, DataFacts& facts, std::vector<ColumnLook>& looks) {
  CellText commas = cells;
  commas.decimal = DecimalMark::comma;
  std::string buffer;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool has_comma = facts.arrays[i].has_commas && !read_double(row[i], cells, buffer);
    add_cell(row[i], place, has_comma ? commas : cells, facts.arrays[i], looks[i]);
    looks[i].once.add(row[i]);
  }
}

/// Whether a word can only mean a missing value. "none" and "nil" may be classes.
bool is_only_missing(const std::string& spelling) {
  std::string lower = spelling;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return !lower.empty() && lower != "none" && lower != "nil";
}

/// The spellings of an empty field in all columns, for data.missing, where some occur in columns of
/// texts, in which they would be words otherwise. Empty where a target column has one.
std::vector<std::string> find_missing(const std::vector<ColumnLook>& looks,
                                      const DataFacts& facts) {
  std::set<std::string> all;
  bool are_wanted = false, is_label = false;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const ColumnLook& look = looks[i];
    const ArrayFacts& column = facts.arrays[i];
    const bool holds_words = column.is_text && look.others > 0;
    for (const std::string& spelling : look.spellings) {
      const bool is_taken = !holds_words || is_only_missing(spelling);
      if (is_taken && !spelling.empty()) all.insert(spelling);
      are_wanted = are_wanted || (holds_words && is_taken);
      is_label = is_label || names_label(column.name);
    }
  }
  if (!are_wanted || is_label) return {};
  return {all.begin(), all.end()};
}

/// Completes the facts of a column after all of it was read.
void settle_column(const ColumnLook& look, const CellText& cells, ArrayFacts& column) {
  const bool are_dates = look.dates > 0 && look.others == 0 && column.numbers.count == 0;
  const bool are_numbers = !column.is_text && column.numbers.count > 0;
  if (are_dates || are_numbers || (cells.missing && look.others > 0))
    column.missing += look.missing_words;
  else if (look.missing_words > 0)
    column.is_text = true;
  if (!are_dates) return;
  column.is_text = false;
  column.first_text.clear();
  column.numbers = look.times;
  column.has_points = true;
  column.made_by = {"unix_time"};
}

/// Calls `visit` with the rows after the files' headers, within the bounds.
template <class Visit>
TableBounds each_row(const std::vector<std::string>& paths, const Opening& opening,
                     std::size_t columns, const Visit& visit) {
  TableBounds bounds;
  for (const std::string& path : paths) {
    DelimitedReader reader = opening.reader(path);
    if (names_in_header(reader).empty()) continue;
    while (reader.next()) {
      const auto& cells = reader.fields();
      if (reader.is_empty_line()) continue;
      if (!bounds.take(reader.position())) return bounds;
      if (cells.size() != columns) {
        throw Error(ErrorKind::data,
                    Diagnostic{.message = "a row with another number of fields than the header",
                               .file = path,
                               .line = static_cast<int>(reader.line()),
                               .expected = std::to_string(columns),
                               .got = std::to_string(cells.size())});
      }
      visit(cells, RowPlace{path, reader.line()});
    }
    bounds.next_file();
  }
  return bounds;
}

/// Takes the names of the columns, or reports what is wrong with them.
void take_header(const RowPlace& place, const std::vector<std::string>& header, DataFacts& facts) {
  if (!facts.arrays.empty()) {
    if (header.size() != facts.arrays.size()) facts.problem = "the files have different columns";
    return;
  }
  for (const std::string& name : header) {
    if (!is_text(name)) {
      throw Error(ErrorKind::data, Diagnostic{.message = "the first row is no text",
                                              .file = std::string(place.path),
                                              .line = static_cast<int>(place.line),
                                              .expected = "names of columns in UTF-8",
                                              .fix = remedy_of_bytes});
    }
    std::string buffer;
    if (!read_double(name, {}, buffer) && !name.empty()) continue;
    facts.problem = "the first row names no columns (\"" + name + "\"): name them, such as " +
                    "data.columns = [ \"" +
                    (header.size() == 1 ? "c1" : "c{1.." + std::to_string(header.size()) + "}") +
                    "\" ]";
    return;
  }
  if (header.size() > most_columns) {
    facts.problem = "more columns than are looked at: " + std::to_string(header.size());
    return;
  }
  for (const std::string& name : header) {
    if (facts.find(name) != nullptr) facts.problem = "two columns have the name \"" + name + "\"";
    if (name.find_first_of("{}") != std::string::npos)
      facts.problem = "a column's name has braces, which stand for several: \"" + name + "\"";
    facts.arrays.emplace_back().name = name;
    facts.arrays.back().columns = {name};
  }
}

/// By column number: the rarest word of each column that has few different words, where at most one
/// row in a hundred has it.
std::map<std::size_t, std::string> rare_words(DataFacts& facts) {
  constexpr std::size_t most_words = 20;
  std::map<std::size_t, std::string> rare;
  for (std::size_t i = 0; i < facts.arrays.size(); ++i) {
    ArrayFacts& column = facts.arrays[i];
    if (!column.is_text || column.words.size() < 3 || column.words.size() > most_words) continue;
    std::size_t rarest = column.words[0].empty() ? 1 : 0;  // an empty field is no word
    for (std::size_t w = rarest; w < column.words.size(); ++w) {
      if (column.word_counts[w] < column.word_counts[rarest]) rarest = w;
    }
    column.rare_count = column.word_counts[rarest];
    if (column.rare_count * 100 <= column.rows) rare[i] = column.words[rarest];
  }
  return rare;
}

/// Leaves unnamed columns out, which are indices as pandas and R write them.
void leave_indices_out(DataFacts& facts) {
  std::erase_if(facts.arrays, [&](const ArrayFacts& column) {
    const bool is_index = column.name.starts_with("Unnamed: ");
    if (is_index)
      facts.notes.push_back("the column \"" + column.name +
                            "\", which has no name, is left out: " + "an index");
    return is_index;
  });
}

void add_form_keys(const NumberMarks& marks, DataFacts& facts) {
  const std::string& why = marks.why;
  if (!why.empty() && !(facts.said.decimal && facts.said.thousands))
    facts.notes.push_back("marks of numbers (data.decimal, data.thousands) are set " + why);
  facts.notes.insert(facts.notes.end(), marks.notes.begin(), marks.notes.end());
  if (marks.decimal == DecimalMark::comma) facts.keys.push_back({"decimal", "\",\"", why, ""});
  constexpr const char* spellings[] = {"none", ",", ".", "space", "_"};
  if (marks.thousands != ThousandsMark::none) {
    facts.keys.push_back(
        {"thousands", toml_string(spellings[static_cast<std::size_t>(marks.thousands)]), why, ""});
  }
}

void look_table(const SplitPaths& paths, DataFacts& facts, bool is_csv) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  Opening opening{is_csv, {}};
  opening.cells.missing = facts.said.missing;
  for (const std::string& path : paths.train) {
    DelimitedReader reader = opening.reader(path);
    const std::vector<std::string> header = names_in_header(reader);
    if (header.empty()) continue;
    take_header({path, reader.line()}, header, facts);
    if (!facts.problem.empty()) return;
  }
  const auto read = [&](const auto& visit) {
    return each_row(paths.train, opening, facts.arrays.size(), visit);
  };
  const char separator = is_csv ? opening.reader(paths.train.at(0)).form().separator : '\t';
  const NumberMarks marks = find_number_marks(
      facts.said, facts.arrays, separator == ',',
      [&](std::string_view cell) { return is_listed(cell, opening.cells); },
      [&](auto visit) { read([&](const auto& row, const RowPlace&) { visit(row); }); });
  opening.cells.decimal = marks.decimal;
  opening.cells.thousands = marks.thousands;
  // Needs no key: the first rows of each file show the separator again, also in held-out files.
  if (is_csv && separator != ',')
    facts.notes.push_back("cells are separated by " + separator_words(separator));
  add_form_keys(marks, facts);
  for (std::size_t c = 0; c < facts.arrays.size(); ++c)
    facts.arrays[c].has_commas = marks.has_commas[c];
  std::vector<ColumnLook> looks(facts.arrays.size());
  const TableBounds bounds = read([&](const auto& row, const RowPlace& place) {
    add_cells(row, place, opening.cells, facts, looks);
  });
  if (std::vector<std::string> missing = find_missing(looks, facts); !missing.empty()) {
    const std::string list = toml_list_of_strings(missing);
    facts.keys.push_back(
        {"missing", list, "they occur among texts, and mean that there is none", ""});
    facts.notes.push_back("empty fields are also spelt " + list +
                          ": data.missing; without it they are words like others");
    opening.cells.missing = std::move(missing);
  }
  for (std::size_t i = 0; i < looks.size(); ++i)
    settle_column(looks[i], opening.cells, facts.arrays[i]);
  take_bounds(bounds, paths.train, facts);
  const auto holds_text = [](const ArrayFacts& column) { return column.is_text; };
  // At this point it is known which columns hold text; a second pass counts their texts.
  if (std::any_of(facts.arrays.begin(), facts.arrays.end(), holds_text)) {
    ColumnTexts texts;
    read([&](const auto& cells, const RowPlace&) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        texts.add(i, is_listed(cells[i], opening.cells) ? std::string_view() : cells[i]);
    });
    texts.tell(facts.arrays, !bounds.is_over());
    std::map<std::size_t, std::string> rare = rare_words(facts);
    const auto find = [&](const auto& cells, const RowPlace& place) {
      std::erase_if(rare, [&](const auto& one) {
        const std::string_view cell = cells[one.first];
        const bool is_here =
            cell == one.second || (!facts.arrays[one.first].alike_but_for_blanks.empty() &&
                                   without_blanks(cell) == one.second);
        if (is_here) facts.arrays[one.first].rare_text = text_in_row(one.second, place);
        return is_here;
      });
    };
    if (!rare.empty()) read(find);
  }
  for (std::size_t i = 0; i < facts.arrays.size(); ++i) {
    ArrayFacts& column = facts.arrays[i];
    column.sample = type_of_column(column);
    const bool is_date = !column.made_by.empty();
    column.is_identifier =
        looks[i].once.holds() && (column.is_text || (column.numbers.whole && !is_date));
    if (is_date) {
      facts.notes.push_back("\"" + column.name +
                            "\" holds dates: unix_time makes seconds of them, weekday, hour, month "
                            "and others a part");
    }
  }
  leave_indices_out(facts);
}

void look_csv(const SplitPaths& paths, DataFacts& facts) { look_table(paths, facts, true); }
void look_tsv(const SplitPaths& paths, DataFacts& facts) { look_table(paths, facts, false); }

}  // namespace

DataLook csv() { return {.kind = "csv", .takes = takes_csv, .look = look_csv, .fit = fit_table}; }
DataLook tsv() { return {.kind = "tsv", .takes = takes_tsv, .look = look_tsv, .fit = fit_table}; }

}  // namespace tandem::api::looks
