#include "api/init/data/table_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "api/init/data/data_look.h"
#include "api/init/data/token_lengths.h"
#include "api/init/fields.h"
#include "api/init/roles.h"
#include "engine/formats/files.h"
#include "engine/formats/tokenizer/tokenizer.h"
#include "engine/formats/tokenizer/utf8.h"
#include "engine/graph/text.h"
#include "engine/operators/checks.h"

namespace tandem::api {
namespace {

/// "i13" is ("i", 13); without digits at its end -1.
std::pair<std::string, std::int64_t> prefix_of(const std::string& name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size() || name.size() - digits > 9) return {name, -1};
  return {name.substr(0, digits), std::stoll(name.substr(digits))};
}

/// Adds, for each input that no array fits, what fits it of the columns of these lists without
/// identifiers.
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

/// What `give` of the function `tokens` is for an input, as Hugging Face's tokenizers name them.
std::string part_for(const std::string& input) {
  const Role role = role_named(input);
  if (role == Role::mask) return ", give='mask'";
  if (role == Role::segments) return ", give='types'";
  return "";
}

/// Whether an input takes the ids of a text, or what goes with them. Where tables are known ids are
/// rows of one, and of the largest where several inputs are.
bool takes_text(const InputFacts& input, const std::vector<InputFacts>& all, std::int64_t ids) {
  const Role role = role_of(input);
  if (role != Role::none) return role == Role::mask || role == Role::segments;
  const auto is_of = [](std::int64_t least) {
    return [=](const InputFacts& other) {
      return role_of(other) == Role::none && other.table_rows >= least;
    };
  };
  if (std::any_of(all.begin(), all.end(), is_of(std::max<std::int64_t>(ids, 1))))
    return input.table_rows >= std::max<std::int64_t>(ids, 1);
  return std::none_of(all.begin(), all.end(), is_of(1)) || input.table_rows > 0;
}

/// Columns of single texts that are not learned.
std::vector<ArrayFacts> columns_of_texts(const DataFacts& facts) {
  std::vector<ArrayFacts> texts;
  for (const ArrayFacts& array : facts.arrays) {
    if (array.is_text && array.sample.shape.empty() && !array.is_label && !array.stacked)
      texts.push_back(array);
  }
  return texts;
}

/// The tokenizer.json beside the data, or beside the model, where exporters write it; "" for none.
std::string tokenizer_near(const DataFacts& facts) {
  namespace fs = std::filesystem;
  const fs::path data =
      is_directory(facts.path) ? fs::path(facts.path) : fs::path(facts.path).parent_path();
  for (const fs::path& folder : {data, fs::path(facts.model_folder)}) {
    const std::string file = (folder / "tokenizer.json").string();
    if (!folder.empty() && path_exists(file)) return file;
  }
  return "";
}

/// Where there are several inputs of ids, each takes the column it is named after: "query_ids" the
/// texts of "query". Null where that is none, or several.
const ArrayFacts* column_for(const InputFacts& input, const std::vector<ArrayFacts>& texts) {
  const ArrayFacts* found = nullptr;
  for (const ArrayFacts& column : texts) {
    const std::string name = plain_name(column.name);
    if (name.empty() || !plain_name(input.name).starts_with(name)) continue;
    if (found != nullptr) return nullptr;
    found = &column;
  }
  return found;
}

/// Rows of the smallest table that positions are looked up in.
std::int64_t most_positions(const std::vector<InputFacts>& inputs) {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const InputFacts& input : inputs) {
    if (role_of(input) == Role::positions && input.table_rows > 0)
      most = std::min(most, input.table_rows);
  }
  return most;
}

/// Lengths of a column's texts, the length that samples get and what they are filled up with.
ArrayFacts measured(const DataFacts& facts, const std::string& column, const std::string& tokenizer,
                    std::int64_t positions) {
  constexpr std::int64_t step = 8;
  const std::int64_t most = std::min<std::int64_t>(512, positions);  // 512: those of a BERT
  ArrayFacts array;
  array.lengths = token_lengths(facts, column, tokenizer);
  if (array.lengths.empty()) return array;
  const std::int64_t longest = (array.lengths.rbegin()->first + step - 1) / step * step;
  array.sample.shape = {std::clamp(longest, std::min(step, most), most)};
  array.pad = Tokenizer::read(tokenizer)->pad();
  return array;
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
    array.has_points = array.has_points || column->has_points;
    array.missing += column->missing;
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
    if (!column.sample.shape.empty()) continue;  // a list
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
  // One column at least is left for what is learned.
  if (others.size() < columns.size()) add("all other columns", others);
  if (of_numbers.size() < columns.size()) add("all columns of numbers", of_numbers);
  if (of_text.size() < columns.size()) add("all columns of text", of_text);
  if (std::any_of(columns.begin(), columns.end(),
                  [](const auto& column) { return column.is_label; }))
    add_without_identifiers(inputs, {others, of_numbers, of_text}, facts);
}

void add_token_arrays(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  const std::vector<ArrayFacts> texts = columns_of_texts(facts);
  const std::string tokenizer = tokenizer_near(facts);
  if (texts.empty() || tokenizer.empty()) return;
  const auto is_row_of_table = [](const InputFacts& input) {
    return role_of(input) == Role::none && input.table_rows > 0;
  };
  const bool are_several = std::count_if(inputs.begin(), inputs.end(), is_row_of_table) > 1;
  const std::int64_t ids = are_several ? Tokenizer::read(tokenizer)->size() : 1;
  std::vector<const InputFacts*> takers;
  for (const InputFacts& input : inputs) {
    const Shape& shape = input.sample.shape;
    if (shape.size() == 1 && shape[0] != 0 && shape[0] != 1 && is_integer(input.sample.dtype) &&
        facts.find(input.name) == nullptr && takes_text(input, inputs, ids))
      takers.push_back(&input);
  }
  const auto of_ids = std::count_if(takers.begin(), takers.end(), [](const InputFacts* input) {
    return role_of(*input) == Role::none;
  });
  std::map<std::string, ArrayFacts> free;  // what the model leaves free is as long as the texts are
  for (const InputFacts* const input : takers) {
    const ArrayFacts* const column = of_ids == 1 ? &texts.front() : column_for(*input, texts);
    if (column == nullptr) continue;
    Shape shape = input->sample.shape;
    ArrayFacts array;
    if (shape[0] < 0) {
      if (!free.contains(column->name))
        free[column->name] = measured(facts, column->name, tokenizer, most_positions(inputs));
      array = free[column->name];
      if (array.lengths.empty()) continue;
      shape = array.sample.shape;
      facts.chose_length = true;
    }
    array.name = input->name;
    array.source = column->name;
    array.columns = {column->name};
    array.made_by = {fmt::format("tokens(length={}{})", shape[0], part_for(input->name))};
    array.made = fmt::format("of the texts of \"{}\", by tokenizer.json", column->name);
    array.sample = {DType::int64, shape};
    array.rows = column->rows;
    array.numbers.add(0);  // ids are checked when the data is read
    facts.arrays.push_back(std::move(array));
    facts.tokenizer = tokenizer;
  }
}

}  // namespace tandem::api
