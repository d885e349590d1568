// Assigns columns to tables that they each look up on their own: the order in which they fit, and
// which whole numbers are categories where there are too few text columns.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "api/init/column_tables.h"
#include "engine/config/keys/config_value.h"
#include "engine/config/keys/key_forms.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

/// Each value has a row, and one more row is for values that training lacks.
bool fits(std::int64_t values, std::int64_t rows) { return values < rows; }

std::int64_t values_of(const ArrayFacts& column) {
  if (column.is_text) return column.texts * (column.may_have_more_texts ? 2 : 1);
  return static_cast<std::int64_t>(column.numbers.distinct.size()) + (column.has_gaps() ? 1 : 0);
}

/// Whether a column holds whole numbers that may be read as words.
bool may_be_words(const ArrayFacts& column) {
  const Numbers& numbers = column.numbers;
  return !column.is_text && column.made_by.empty() && !column.has_points && numbers.whole &&
         numbers.finite && !numbers.many && numbers.count > 0 && numbers.least >= 0;
}

bool fit_in_order(const ColumnList& columns, const std::vector<std::int64_t>& rows) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!fits(values_of(*columns[i]), rows[i])) return false;
  }
  return columns.size() == rows.size();
}

/// Calls f with each list of `count` of the columns.
template <class Visit>
void each_choice(const ColumnList& columns, std::size_t count, ColumnList& chosen, std::size_t from,
                 const Visit& visit) {
  if (chosen.size() == count) return visit(chosen);
  for (std::size_t i = from; i < columns.size(); ++i) {
    chosen.push_back(columns[i]);
    each_choice(columns, count, chosen, i + 1, visit);
    chosen.pop_back();
  }
}

bool holds(const ColumnList& list, const ArrayFacts* column) {
  return std::find(list.begin(), list.end(), column) != list.end();
}

}  // namespace

std::vector<std::size_t> order_of_tables(const std::vector<std::int64_t>& values,
                                         const std::vector<std::int64_t>& rows) {
  if (values.size() != rows.size()) return {};
  const auto by_size = [](const std::vector<std::int64_t>& numbers) {
    std::vector<std::size_t> places(numbers.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
    return places;
  };
  const std::vector<std::size_t> columns = by_size(values), tables = by_size(rows);
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!fits(values[columns[i]], rows[tables[i]])) return {};
    order[tables[i]] = columns[i];
  }
  return order;
}

void offer_tables(const InputFacts& input, const ArrayFacts& array, FieldGuess& field) {
  if (!array.stacked || !array.is_text || input.element_rows.size() != array.columns.size() ||
      array.texts_by_part.size() != array.columns.size())
    return;
  std::vector<std::int64_t> values = array.texts_by_part;
  if (array.may_have_more_texts) {
    for (std::int64_t& count : values) count *= 2;
  }
  std::vector<std::string> columns = array.columns;
  const std::vector<std::size_t> order = order_of_tables(values, input.element_rows);
  for (std::size_t i = 0; i < order.size(); ++i) columns[i] = array.columns[order[i]];
  field.other_order = !order.empty();
  if (field.other_order)
    field.todo += fmt::format(
        ". In the order {} every column has enough rows, by the sizes of the tables: was the model "
        "made for this order?",
        toml_list_of_strings(columns));
  field.offer = fmt::format("{{ from = {}, as = [ \"vocabulary(by='table')\" ] }}",
                            toml_list_of_strings(columns));
  field.offered = array.columns;
}

std::optional<ColumnSplit> split_columns(const std::vector<InputFacts>& inputs,
                                         const FieldGuesses& guesses, const ColumnList& columns) {
  ColumnSplit split;
  std::vector<std::size_t> ids, numbers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!guesses.fields[i].lacks_array || inputs[i].sample.shape.size() != 1) continue;
    if (is_float(inputs[i].sample.dtype))
      numbers.push_back(i);
    else if (static_cast<std::int64_t>(inputs[i].element_rows.size()) == inputs[i].sample.shape[0])
      ids.push_back(i);
  }
  if (ids.size() != 1 || numbers.size() != 1) return std::nullopt;
  split.ids = ids[0], split.numbers = numbers[0];
  const std::vector<std::int64_t>& rows = inputs[split.ids].element_rows;
  ColumnList texts, others, candidates;
  for (const ArrayFacts* column : columns) {
    (column->is_text ? texts : others).push_back(column);
    if (may_be_words(*column)) candidates.push_back(column);
  }
  constexpr std::size_t most_moved = 2, most_candidates = 40;
  const std::size_t moved = rows.size() - std::min(texts.size(), rows.size());
  const auto wanted =
      static_cast<std::size_t>(std::max<std::int64_t>(inputs[split.numbers].sample.shape[0], 0));
  if (moved == 0 || moved > most_moved || candidates.size() > most_candidates ||
      others.size() != wanted + moved)
    return std::nullopt;
  std::size_t found = 0;
  ColumnList chosen;
  each_choice(candidates, moved, chosen, 0, [&](const ColumnList& words) {
    ColumnList all;
    for (const ArrayFacts* column : columns) {
      if (column->is_text || holds(words, column)) all.push_back(column);
    }
    if (!fit_in_order(all, rows)) return;
    ++found;
    split.words = words;
    split.of_ids = std::move(all);
  });
  if (found != 1) return std::nullopt;
  for (const ArrayFacts* column : others) {
    if (!holds(split.words, column)) split.of_numbers.push_back(column);
  }
  return split;
}

}  // namespace tandem::api
