#include "engine/data/table_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "engine/formats/table_form.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

bool has_whole_lines(const DataConfig& config) {
  return std::holds_alternative<JsonLines>(config.kind) ||
         std::holds_alternative<TextLines>(config.kind);
}

/// For a csv file whose separator still has to be found: none yet.
char known_separator(const DataConfig& config) {
  constexpr char all[] = {',', ',', ';', '\t', '|'};
  if (const auto* csv = std::get_if<CsvTable>(&config.kind))
    return all[static_cast<std::size_t>(csv->separator)];
  return has_whole_lines(config) ? '\n' : '\t';  // a line feed cuts no line
}

bool finds_separator(const DataConfig& config) {
  const auto* const csv = std::get_if<CsvTable>(&config.kind);
  return csv != nullptr && csv->separator == Separator::automatic;
}

DelimitedReader open_reader(const DataConfig& config, const std::string& path) {
  const bool is_csv = std::holds_alternative<CsvTable>(config.kind);
  const char known = known_separator(config);
  DelimitedReader reader(path, known, is_csv);
  if (is_csv) {
    const TextTable& table = *config.table();
    reader.find_form(
        {finds_separator(config) ? std::string(known_separators) : std::string(1, known),
         table.header, columns_of_fields(config), table.columns.size()});
  }
  return reader;
}

/// Keys that an object may be without: those that `may_lack` names, and those whose fields give a
/// value to empty cells.
std::optional<JsonRow> json_rows(const DataConfig& config, const TablePlan& plan,
                                 std::vector<char> may_lack) {
  if (!std::holds_alternative<JsonLines>(config.kind)) return std::nullopt;
  may_lack.resize(plan.columns.size());
  for (std::size_t c = 0; c < plan.columns.size(); ++c) {
    bool is_read = false, have_value = true;
    for (const TableField& field : plan.fields) {
      if (std::find(field.columns.begin(), field.columns.end(), c) == field.columns.end()) continue;
      is_read = true;
      have_value = have_value && !field.missing.empty();
    }
    if (is_read && have_value) may_lack[c] = 1;
  }
  return JsonRow(plan.columns, std::move(may_lack));
}

std::vector<std::string> header_of(DelimitedReader& reader, const std::string& file) {
  const auto fail = [&](std::string message, std::size_t column) {
    throw Error(ErrorKind::data, Diagnostic{.message = std::move(message),
                                            .file = file,
                                            .line = static_cast<int>(reader.line()),
                                            .column = static_cast<int>(column)});
  };
  bool found = reader.next();
  while (found && reader.is_empty_line()) found = reader.next();
  if (!found) fail("the file is empty: the first row names the columns", 0);
  if (!reader.problem().empty()) fail(reader.problem(), reader.problem_field() + 1);
  std::vector<std::string> names = header_names(reader.fields(), reader.form());
  std::unordered_set<std::string_view> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!known.insert(names[i]).second) fail("two columns have the name `" + names[i] + "`", i + 1);
  }
  return names;
}

void expect_same_header(const std::vector<std::string>& columns,
                        const std::vector<std::string>& names, const std::string& file) {
  for (std::size_t i = 0; i < std::max(names.size(), columns.size()); ++i) {
    const std::string expected = i < columns.size() ? columns[i] : "";
    const std::string got = i < names.size() ? names[i] : "";
    if (find_column({expected}, got) == 0) continue;
    throw Error(ErrorKind::data,
                Diagnostic{.message = "the header names other columns",
                           .file = file,
                           .line = 1,
                           .column = static_cast<int>(i + 1),
                           .expected = expected.empty() ? "no more columns" : expected,
                           .got = got.empty() ? "no more columns" : got});
  }
}

/// The advice for an empty cell. A class is usually a label, which cannot have a default.
std::string fix_of_empty(const TableField& field) {
  const std::string skips = "data.on_bad = \"skip\" leaves such rows out";
  return field.words.empty() ? "begin `as` with \"missing(0)\" to give empty fields a value; for "
                               "labels, which cannot be replaced, " +
                                   skips
                             : skips;
}

}  // namespace

std::vector<std::string> table_columns(const DataConfig& config, const std::string& path,
                                       std::vector<std::string>* notes) {
  const auto tell = [&](const DelimitedReader& reader) {
    const TableForm form = reader.form();
    if (notes == nullptr) return;
    if (finds_separator(config) && form.separator != known_separators[0])
      notes->push_back(shown_path(path) + " is separated by " + separator_words(form.separator));
    if (form.has_index) {
      notes->push_back(shown_path(path) +
                       ": the rows begin with an index that the header does not " +
                       "name, the column `" + name_of_unnamed(0) + "`");
    }
  };
  if (!config.table()->columns.empty()) return config.table()->columns;
  struct stat status;
  if (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{.message = "a pipe is read once: its columns have to be known before",
                   .file = path,
                   .expected = "data.columns",
                   .got = "a header",
                   .fix = "data.columns = [ \"FIRST\", \"SECOND\" ] with all of their names, and "
                          "data.header = true"});
  }
  DelimitedReader reader = open_reader(config, path);
  tell(reader);
  return header_of(reader, shown_path(path));
}

std::vector<Diagnostic> missing_columns(const std::vector<std::string>& columns,
                                        const std::vector<std::string>& header,
                                        const std::string& file, const std::string& separator_fix) {
  std::vector<Diagnostic> problems;
  for (const std::string& name : columns) {
    if (find_column(header, name) != std::string::npos) continue;
    problems.push_back({.message = "the header does not name the column `" + name + "`",
                        .file = file,
                        .line = 1,
                        .fix = did_you_mean(nearest_name(name, header))});
  }
  if (problems.empty()) return problems;
  const bool has_none = problems.size() == columns.size() && columns.size() > 1;
  if (has_none) {
    problems.resize(1);
    problems[0].message = "the header names none of the columns";
    problems[0].fix = "the first line has to name the columns";
  }
  const auto shown = [](const std::vector<std::string>& names) {
    constexpr std::size_t most_names = 40;
    return joined(std::span(names).first(std::min(names.size(), most_names))) +
           (names.size() > most_names ? ", …" : "");
  };
  problems[0].expected = has_none ? shown(columns) : "all columns that are read";
  problems[0].got = shown(header);
  const bool is_one =
      header.size() == 1 && header[0].find_first_of(known_separators) != std::string::npos;
  if (is_one) problems[0].fix = "the cells are separated in another way: " + separator_fix;
  return problems;
}

char separator_of(const DataConfig& config, const std::string& path) {
  return finds_separator(config) ? open_reader(config, path).form().separator
                                 : known_separator(config);
}

TableFile::TableFile(const DataConfig& config, const TablePlan& plan, const std::string& path,
                     const std::vector<char>& may_lack)
    : plan_(plan),
      name_(shown_path(path)),
      reader_(open_reader(config, path)),
      json_(json_rows(config, plan, may_lack)),
      may_name_columns_(!has_whole_lines(config)),
      header_(config.table()->header),
      names_(plan.columns) {
  for (std::size_t c = 0; c < plan.columns.size(); ++c) cell_of_.push_back(static_cast<int>(c));
  if (header_) {
    const std::vector<std::string> names = header_of(reader_, name_);
    if (may_lack.empty()) {
      expect_same_header(plan.columns, names, name_);
    } else {
      match_header(names, may_lack);
    }
    return;
  }
  for (std::size_t c = 0; c < may_lack.size() && !json_; ++c) {
    if (may_lack[c] != 0) lacks_.push_back(c);
  }
  decided_ = lacks_.empty();
}

TableFile::TableFile(const DataConfig& config, const TablePlan& plan, const std::string& path,
                     char separator, std::uint64_t from, std::int64_t line)
    : plan_(plan),
      name_(shown_path(path)),
      reader_(path, separator, std::holds_alternative<CsvTable>(config.kind), from, line),
      json_(json_rows(config, plan, {})),
      may_name_columns_(!has_whole_lines(config)),
      header_(true),
      names_(plan.columns) {
  for (std::size_t c = 0; c < plan.columns.size(); ++c) cell_of_.push_back(static_cast<int>(c));
}

void TableFile::match_header(const std::vector<std::string>& names,
                             const std::vector<char>& may_lack) {
  std::vector<std::string> wanted;
  std::unordered_map<std::string_view, int> places;
  for (const std::string& name : names) places.emplace(name, static_cast<int>(places.size()));
  for (std::size_t c = 0; c < plan_.columns.size(); ++c) {
    const auto exact = places.find(plan_.columns[c]);
    const std::size_t near =
        exact == places.end() ? find_column(names, plan_.columns[c]) : std::string::npos;
    cell_of_[c] = exact != places.end()       ? exact->second
                  : near == std::string::npos ? -1
                                              : static_cast<int>(near);
    if (may_lack[c] == 0) wanted.push_back(plan_.columns[c]);
  }
  std::vector<Diagnostic> problems = missing_columns(wanted, names, name_, plan_.separator_fix);
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
  names_ = names;
  same_ = names == plan_.columns;
}

/// From here on rows are those without the columns that they may lack.
void TableFile::lack_columns() {
  names_.clear();
  for (std::size_t c = 0; c < plan_.columns.size(); ++c) {
    const bool lacks = std::find(lacks_.begin(), lacks_.end(), c) != lacks_.end();
    cell_of_[c] = lacks ? -1 : static_cast<int>(names_.size());
    if (!lacks) names_.push_back(plan_.columns[c]);
  }
  same_ = false;
}

bool TableFile::next() {
  if (!reader_.next()) return false;
  if (reader_.line() > std::numeric_limits<int>::max()) {
    throw Error(
        ErrorKind::data,
        Diagnostic{.message = "more than 2^31 - 1 lines", .file = name_, .fix = "split the file"});
  }
  return true;
}

std::string_view TableFile::cell(std::string_view column) const {
  const auto found = std::find(names_.begin(), names_.end(), column);
  const auto at = static_cast<std::size_t>(found - names_.begin());
  const std::vector<std::string_view>& cells = json_ ? json_->cells() : reader_.fields();
  return at < cells.size() ? cells[at] : std::string_view();
}

/// Which of the two the file is about is a guess once both occur: a row that is cut short may be
/// the first one. Skipping bad rows would then leave out the good ones.
void TableFile::refuse_mixed_lengths() const {
  const std::size_t all = plan_.columns.size(), now = reader_.fields().size();
  const bool may_be_either = decided_ && !lacks_.empty();
  if (!may_be_either || (now != all && now + lacks_.size() != all)) return;
  const auto fields = [](std::size_t count) {
    return std::to_string(count) + (count == 1 ? " field" : " fields");
  };
  throw Error(
      ErrorKind::data,
      Diagnostic{.message = "rows of two lengths: line " + std::to_string(decided_at_) + " has " +
                            fields(names_.size()) + ", line " + std::to_string(reader_.line()) +
                            " has " + fields(now),
                 .file = name_,
                 .line = static_cast<int>(reader_.line()),
                 .expected = "in all rows either " + fields(all) + ", or " +
                             fields(all - lacks_.size()) + " without `" + plan_.columns[lacks_[0]] +
                             (lacks_.size() > 1 ? "` and others" : "`"),
                 .fix = "correct the row that is too short or too long; data.on_bad = \"skip\" "
                        "cannot know which one it is"});
}

/// Reports a row that holds only the columns' names, in their order if it is not the first row.
/// Names that are numbers may be a row's values, and so may the name of a single column, except in
/// the first row.
std::optional<Diagnostic> TableFile::header_among_rows() const {
  const std::vector<std::string_view>& cells = reader_.fields();
  const bool is_first = reader_.line() == 1 && !header_;
  const auto same = [](std::string_view a, std::string_view b) { return trimmed(a) == trimmed(b); };
  const auto is_number = [](const std::string& name) {
    return name.find_first_not_of("0123456789.+-") == std::string::npos;
  };
  const bool are_names =
      is_first ? std::is_permutation(cells.begin(), cells.end(), names_.begin(), names_.end(), same)
               : names_.size() > 1 && std::equal(cells.begin(), cells.end(), names_.begin(), same);
  if (!are_names || std::all_of(names_.begin(), names_.end(), is_number)) return std::nullopt;
  Diagnostic d{.message = "a header among the rows",
               .column = 1,
               .fix = "remove the line; data.on_bad = \"skip\" leaves it out"};
  if (is_first) {
    d.message = "this row names the columns";
    d.fix = "set data.header = true";
    if (names_.size() == 1) d.fix += "; where it is a value, give the column another name";
  }
  return d;
}

std::optional<Diagnostic> TableFile::problem() {
  const std::vector<std::string_view>& cells = reader_.fields();
  if (!reader_.problem().empty()) {
    return Diagnostic{.message = reader_.problem(),
                      .column = static_cast<int>(reader_.problem_field() + 1)};
  }
  if (!decided_) {
    if (cells.size() + lacks_.size() == plan_.columns.size()) lack_columns();
    decided_ = cells.size() == names_.size();
    decided_at_ = reader_.line();
  }
  if (cells.size() == names_.size()) return may_name_columns_ ? header_among_rows() : std::nullopt;
  if (reader_.is_empty_line()) {
    return Diagnostic{.message = "an empty line",
                      .column = 1,
                      .expected = std::to_string(names_.size()) + " fields"};
  }
  refuse_mixed_lengths();
  const std::size_t at = std::min(cells.size(), names_.size()) + 1;
  Diagnostic d{
      .message = cells.size() < at && at <= names_.size()
                     ? "the field of `" + names_[at - 1] + "` and those after it are missing"
                     : "a field more than there are columns",
      .column = static_cast<int>(at),
      .expected = std::to_string(names_.size()) + " fields",
      .got = std::to_string(cells.size())};
  if (!decided_) {
    d.expected += ", or " + std::to_string(names_.size() - lacks_.size()) + " without `" +
                  plan_.columns[lacks_[0]] + (lacks_.size() > 1 ? "` and others" : "`");
  }
  return d;
}

std::optional<Diagnostic> TableFile::take_json() {
  if (reader_.is_empty_line())
    return Diagnostic{.message = "an empty line", .expected = "an object"};
  JsonRow::Problem wrong = json_->take(reader_.fields()[0]);
  if (wrong.message.empty()) return std::nullopt;
  return Diagnostic{.message = std::move(wrong.message),
                    .expected = std::move(wrong.expected),
                    .got = std::move(wrong.got)};
}

std::optional<Diagnostic> TableFile::take(RowEncoder& encoder) {
  const auto at = [&](Diagnostic d) {
    d.file = name_;
    d.line = static_cast<int>(reader_.line());
    return d;
  };
  if (std::optional<Diagnostic> wrong = json_ ? take_json() : problem())
    return at(*std::move(wrong));
  const std::vector<std::string_view>* cells = json_ ? &json_->cells() : &reader_.fields();
  if (!same_) {
    cells_.assign(plan_.columns.size(), {});
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      if (cell_of_[c] >= 0) cells_[c] = (*cells)[static_cast<std::size_t>(cell_of_[c])];
    }
    cells = &cells_;
  }
  const std::optional<BadCell> bad = encoder.take(*cells, reader_.line());
  if (!bad) return std::nullopt;
  Diagnostic d{.message = "column `" + plan_.columns[bad->column] + "`: " + bad->message,
               .column = json_ ? 0 : cell_of_[bad->column] + 1,
               .path = "data.fields." + plan_.fields[bad->field].name,
               .expected = bad->expected,
               .got = bad->got,
               .fix = bad->fix};
  if (bad->empty) d.fix = fix_of_empty(plan_.fields[bad->field]);
  if (reader_.line() == 1 && !header_ && may_name_columns_ && !bad->empty) {
    d.fix = "where the first row names the columns, set data.header = true";
  }
  return at(std::move(d));
}

}  // namespace tandem
