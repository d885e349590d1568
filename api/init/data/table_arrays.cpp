#include "api/init/data/table_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "api/init/data/data_look.h"
#include "api/init/fields.h"
#include "engine/formats/files.h"
#include "engine/formats/tokenizer/utf8.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

/// "i13" gives ("i", 13); the number is -1 where there are no digits at the end.
std::pair<std::string, std::int64_t> prefix_of(const std::string& name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size() || name.size() - digits > 9) return {name, -1};
  return {name.substr(0, digits), std::stoll(name.substr(digits))};
}

/// For each input that no array fits: adds a list of columns that fits it without identifiers.
void add_without_identifiers(const std::vector<InputFacts>& inputs,
                             const std::vector<ColumnList>& lists, DataFacts& facts) {
  for (const InputFacts& input : inputs) {
    const auto fits = [&](const ArrayFacts& array) {
      return !array.is_label && misfit(input, array).empty();
    };
    if (std::any_of(facts.arrays.begin(), facts.arrays.end(), fits)) continue;
    for (const ColumnList& list : lists) {
      auto [kept, left_out] = without_identifiers(list);
      if (left_out.empty() || kept.size() < 2) continue;
      ArrayFacts array = stacked_columns("all other columns but " + joined(left_out), kept);
      if (!fits(array)) continue;
      array.left_out = std::move(left_out);
      facts.arrays.push_back(std::move(array));
      break;
    }
  }
}

}  // namespace

std::vector<std::string> names_in_header(DelimitedReader& reader) {
  bool found = reader.next();
  while (found && reader.is_empty_line()) found = reader.next();
  return found ? header_names(reader.fields(), reader.form()) : std::vector<std::string>();
}

std::string text_in_row(std::string_view text, const RowPlace& place) {
  const std::string file = std::filesystem::path(place.path).filename().string();
  return fmt::format("the text {} in line {} of {}", shown_text(text), place.line,
                     with_replacements(file));
}

void take_bounds(const TableBounds& bounds, const std::vector<std::string>& paths,
                 DataFacts& facts) {
  facts.rows_read = bounds.rows();
  facts.has_more_rows = bounds.is_over();
  const bool is_packed = std::any_of(paths.begin(), paths.end(),
                                     [](const std::string& path) { return path.ends_with(".gz"); });
  if (!bounds.is_over() || is_packed || bounds.bytes() == 0) return;
  double bytes = 0;
  for (const std::string& path : paths) bytes += static_cast<double>(file_size(path));
  facts.all_rows = std::llround(static_cast<double>(bounds.rows()) * bytes /
                                static_cast<double>(bounds.bytes()));
  facts.estimated_by = "by the size of the files";
}

void fit_table(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  if (facts.rows_read == 0) return;
  add_stacks(inputs, facts);
  add_token_arrays(inputs, facts);
}

KeptColumns without_identifiers(const ColumnList& columns) {
  KeptColumns result;
  for (const ArrayFacts* column : columns) {
    if (column->is_identifier)
      result.left_out.push_back(column->name);
    else
      result.kept.push_back(column);
  }
  return result;
}

ArrayFacts stacked_columns(const std::string& name, const ColumnList& columns) {
  ArrayFacts array;
  array.name = name;
  array.stacked = true;
  array.rows = columns.front()->rows;
  bool whole = true;
  for (const ArrayFacts* column : columns) {
    array.columns.push_back(column->name);
    array.numbers.add(column->numbers);
    array.by_part.push_back(column->numbers);
    array.is_text = array.is_text || column->is_text;
    array.has_commas = array.has_commas || column->has_commas;
    array.has_points = array.has_points || column->has_points;
    array.missing += column->missing;
    if (array.alike_but_for_blanks.empty())
      array.alike_but_for_blanks = column->alike_but_for_blanks;
    if (array.alike_but_for_case.empty()) array.alike_but_for_case = column->alike_but_for_case;
    array.texts += column->texts;
    array.texts_by_part.push_back(column->is_text ? column->texts : 0);
    array.may_have_more_texts = array.may_have_more_texts || column->may_have_more_texts;
    whole = whole && column->sample.dtype == DType::int64;
  }
  array.sample = {whole && !array.is_text ? DType::int64 : DType::float32,
                  {static_cast<std::int64_t>(columns.size())}};
  return array;
}

void add_stacks(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  const std::vector<ArrayFacts> columns = facts.arrays;
  const auto is_input = [&](const ArrayFacts& column) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const InputFacts& input) {
      return plain_name(input.name) == plain_name(column.name);
    });
  };
  std::map<std::string, ColumnList> groups;
  ColumnList others, of_numbers, of_text;
  for (const ArrayFacts& column : columns) {
    if (!column.sample.shape.empty()) continue;  // lists
    if (!column.made_by.empty()) continue;       // dates, which have functions of their own
    const auto [prefix, number] = prefix_of(column.name);
    if (number >= 0) groups[prefix].push_back(&column);
    if (column.is_label || is_input(column)) continue;
    others.push_back(&column);
    (column.is_text ? of_text : of_numbers).push_back(&column);
  }
  std::vector<ColumnList> added;
  const auto add = [&](const std::string& name, const ColumnList& stacked) {
    if (stacked.size() < 2 || std::find(added.begin(), added.end(), stacked) != added.end()) return;
    added.push_back(stacked);
    facts.arrays.push_back(stacked_columns(name, stacked));
  };
  for (const auto& [prefix, group] : groups) add(prefix, group);
  // At least one column must remain as the target, and the target is no date.
  const auto learnable = static_cast<std::size_t>(
      std::count_if(columns.begin(), columns.end(),
                    [](const ArrayFacts& column) { return column.made_by.empty(); }));
  if (others.size() < learnable) add("all other columns", others);
  if (of_numbers.size() < learnable) add("all columns of numbers", of_numbers);
  if (of_text.size() < learnable) add("all columns of text", of_text);
  if (std::any_of(columns.begin(), columns.end(),
                  [](const auto& column) { return column.is_label; }))
    add_without_identifiers(inputs, {others, of_numbers, of_text}, facts);
}

}  // namespace tandem::api
