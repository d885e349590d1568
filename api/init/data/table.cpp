// Text tables with a header: csv and tsv.
#include <charconv>

#include "api/init/data/data_look.h"
#include "api/init/data/table_arrays.h"
#include "api/init/draft.h"
#include "engine/formats/delimited.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api::looks {
namespace {

constexpr std::int64_t most_rows = 100'000;  // that are read for their ranges
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

void add_rows(DelimitedReader& reader, const std::string& path, DataFacts& facts,
              std::int64_t& rows) {
  while (rows < most_rows && reader.next()) {
    const auto& cells = reader.fields();
    if (reader.is_empty_line()) continue;
    if (cells.size() != facts.arrays.size()) {
      throw Error(ErrorKind::data,
                  Diagnostic{.message = "a row with another number of fields than the header",
                             .file = path,
                             .line = static_cast<int>(reader.line()),
                             .expected = std::to_string(facts.arrays.size()),
                             .got = std::to_string(cells.size())});
    }
    ++rows;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      ArrayFacts& column = facts.arrays[i];
      ++column.rows;
      if (cells[i].empty()) {
        column.has_gaps = true;
      } else if (const auto x = number_of(cells[i])) {
        column.numbers.add(*x);
      } else {
        column.take_text(cells[i]);
      }
    }
  }
}

void look_table(const SplitPaths& paths, DataFacts& facts, char separator, bool quotes) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  std::int64_t rows = 0;
  for (const std::string& path : paths.train) {
    DelimitedReader reader(path, separator, quotes);
    if (!reader.next()) continue;
    const std::vector<std::string> header(reader.fields().begin(), reader.fields().end());
    if (facts.arrays.empty()) {
      for (const std::string& name : header) {
        if (!is_text(name) || name != on_one_line(name)) {
          throw Error(ErrorKind::data, Diagnostic{.message = "the first row is no text",
                                                  .file = path,
                                                  .line = 1,
                                                  .expected = "names of columns in UTF-8"});
        }
        if (!number_of(name) && !name.empty()) continue;
        facts.problem =
            "the first row names no columns (\"" + name + "\"): name them in data.columns";
        return;
      }
      if (header.size() > most_columns) {
        facts.problem = "more columns than are looked at: " + std::to_string(header.size());
        return;
      }
      for (const std::string& name : header) {
        if (facts.find(name) != nullptr)
          facts.problem = "two columns have the name \"" + name + "\"";
        if (name.find_first_of("{}") != std::string::npos)
          facts.problem = "a column's name has braces, which stand for several: \"" + name + "\"";
        facts.arrays.emplace_back().name = name;
        facts.arrays.back().columns = {name};
      }
      if (!facts.problem.empty()) return;
    } else if (header.size() != facts.arrays.size()) {
      facts.problem = "the files have different columns";
      return;
    }
    add_rows(reader, path, facts, rows);
  }
  if (rows == most_rows) facts.rows_read = rows;
  for (ArrayFacts& column : facts.arrays) column.sample = type_of_column(column);
  if (rows > 0) add_stacks(facts);
}

void look_csv(const SplitPaths& paths, DataFacts& facts) { look_table(paths, facts, ',', true); }
void look_tsv(const SplitPaths& paths, DataFacts& facts) { look_table(paths, facts, '\t', false); }

}  // namespace

DataLook csv() {
  return {.kind = "csv", .takes = takes_csv, .look = look_csv, .fit = add_token_arrays};
}
DataLook tsv() {
  return {.kind = "tsv", .takes = takes_tsv, .look = look_tsv, .fit = add_token_arrays};
}

}  // namespace tandem::api::looks
