// Text tables with a header: csv and tsv.
#include <algorithm>
#include <charconv>

#include "api/init/data/column_texts.h"
#include "api/init/data/data_look.h"
#include "api/init/data/table_arrays.h"
#include "engine/formats/delimited.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api::looks {
namespace {

constexpr std::size_t most_columns = 1 << 16;

bool takes_csv(const std::string& path) { return has_ending(path, {".csv"}); }
bool takes_tsv(const std::string& path) { return has_ending(path, {".tsv"}); }

std::optional<double> number_of(std::string_view text) {
  text = trimmed(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return x;
}

TensorType type_of_column(const ArrayFacts& column) {
  return {column.numbers.whole && !column.is_text ? DType::int64 : DType::float32, {}};
}

void add_cell(std::string_view cell, const RowPlace& place, ArrayFacts& column) {
  ++column.rows;
  if (cell.empty()) {
    ++column.missing;
  } else if (const auto x = number_of(cell)) {
    column.numbers.add(*x);
    column.has_points = column.has_points || cell.find_first_of(".eE") != std::string_view::npos;
  } else {
    if (!column.is_text) column.first_text = text_in_row(cell, place);
    column.is_text = true;
  }
}

void add_cells(const std::vector<std::string_view>& cells, const RowPlace& place, DataFacts& facts,
               std::vector<EachOnce>& once) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    add_cell(cells[i], place, facts.arrays[i]);
    once[i].add(cells[i]);
  }
}

/// The rows behind the files' headers, within the bounds.
template <class Visit>
TableBounds each_row(const std::vector<std::string>& paths, char separator, bool quotes,
                     std::size_t columns, const Visit& visit) {
  TableBounds bounds;
  for (const std::string& path : paths) {
    DelimitedReader reader(path, separator, quotes);
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

/// Names of the columns, or what is wrong with them.
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
                                              .expected = "names of columns in UTF-8"});
    }
    if (!number_of(name) && !name.empty()) continue;
    facts.problem = "the first row names no columns (\"" + name + "\"): name them in data.columns";
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

void look_table(const SplitPaths& paths, DataFacts& facts, char separator, bool quotes) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  for (const std::string& path : paths.train) {
    DelimitedReader reader(path, separator, quotes);
    const std::vector<std::string> header = names_in_header(reader);
    if (header.empty()) continue;
    take_header({path, reader.line()}, header, facts);
    if (!facts.problem.empty()) return;
  }
  const auto read = [&](const auto& visit) {
    return each_row(paths.train, separator, quotes, facts.arrays.size(), visit);
  };
  std::vector<EachOnce> once(facts.arrays.size());
  const TableBounds bounds =
      read([&](const auto& cells, const RowPlace& place) { add_cells(cells, place, facts, once); });
  facts.rows_read = bounds.rows();
  facts.has_more_rows = bounds.is_over();
  const auto holds_text = [](const ArrayFacts& column) { return column.is_text; };
  // Which columns hold text is known now; their texts are counted when they are read again.
  if (std::any_of(facts.arrays.begin(), facts.arrays.end(), holds_text)) {
    ColumnTexts texts;
    read([&](const auto& cells, const RowPlace&) {
      for (std::size_t i = 0; i < cells.size(); ++i) texts.add(i, cells[i]);
    });
    texts.tell(facts.arrays, !bounds.is_over());
  }
  for (std::size_t i = 0; i < facts.arrays.size(); ++i) {
    ArrayFacts& column = facts.arrays[i];
    column.sample = type_of_column(column);
    column.is_identifier = once[i].holds() && (column.is_text || column.numbers.whole);
  }
}

void look_csv(const SplitPaths& paths, DataFacts& facts) { look_table(paths, facts, ',', true); }
void look_tsv(const SplitPaths& paths, DataFacts& facts) { look_table(paths, facts, '\t', false); }

}  // namespace

DataLook csv() { return {.kind = "csv", .takes = takes_csv, .look = look_csv, .fit = fit_table}; }
DataLook tsv() { return {.kind = "tsv", .takes = takes_tsv, .look = look_tsv, .fit = fit_table}; }

}  // namespace tandem::api::looks
