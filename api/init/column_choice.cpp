// Columns of a table that are offered for an input which no array fits: which of them are meant is
// asked, with their names and functions to change.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "api/init/data/table_arrays.h"
#include "api/init/fields.h"
#include "api/init/loss.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

std::string quoted_column(const std::string& name) { return "\"" + name + "\""; }

/// Single columns that nothing takes and that no name calls the label.
ColumnList untaken_columns(const DataFacts& data, const std::set<std::string>& taken) {
  ColumnList columns;
  for (const ArrayFacts* array : usable_arrays(data)) {
    const bool is_column = array->columns.size() == 1 && array->sample.shape.empty();
    if (is_column && !array->is_label && !taken.contains(array->columns[0]))
      columns.push_back(array);
  }
  return columns;
}

/// Those that could each be an element of the input's samples.
ColumnList elements_of(const InputFacts& input, ColumnList columns) {
  InputFacts element = input;
  element.sample.shape.clear();
  std::erase_if(columns, [&](const ArrayFacts* array) { return !misfit(element, *array).empty(); });
  return columns;
}

/// Whether some are dates, and unix_time reads the numbers of the others as they are: it takes
/// eight digits for a date, and from 1e11 on other units than seconds.
bool may_be_times(const ColumnList& columns) {
  constexpr double eight_digits = 1e7, nine_digits = 1e8, milliseconds = 1e11;
  const auto is_date = [](const ArrayFacts* column) { return !column->made_by.empty(); };
  return std::any_of(columns.begin(), columns.end(), is_date) &&
         std::all_of(columns.begin(), columns.end(), [&](const ArrayFacts* column) {
           const Numbers& numbers = column->numbers;
           const double most = std::max(std::abs(numbers.least), std::abs(numbers.most));
           return is_date(column) || most < eight_digits ||
                  (numbers.least >= nine_digits && most < milliseconds);
         });
}

/// Leaves identifiers out where there are more columns than are wanted, and enough without them.
std::vector<std::string> leave_identifiers_out(ColumnList& columns, std::size_t wanted) {
  auto [kept, left_out] = without_identifiers(columns);
  if (columns.size() <= wanted || kept.size() < wanted) return {};
  columns = std::move(kept);
  return left_out;
}

/// `untaken`: those that are offered, and those that do not fit.
std::string which_columns(const InputFacts& input, const ArrayFacts& offered,
                          const ColumnList& untaken, std::size_t wanted) {
  const std::string type = fmt::format("{}[{}]", name_of(input.sample.dtype), joined(input.dims));
  const std::size_t count = offered.columns.size();
  const std::string names = source_toml(offered);
  if (count == wanted)
    return fmt::format("are the columns {} those of {}? They are as many", names, type);
  if (count < wanted)
    return fmt::format("{} takes {} columns, and {} are left: {}{}", type, wanted, count, names,
                       passed_over_for_text(input, untaken));
  return fmt::format(
      "which {} of the {} columns {} are those of {}? Strike out the others, also in the lists of "
      "a function",
      wanted, count, names, type);
}

/// How the column that is learned became known, where no name says it.
std::string of_target(const ArrayFacts* labels, const LossChoice& loss, const DataFacts& data) {
  const std::vector<const ArrayFacts*> arrays = usable_arrays(data);
  if (loss.of_model || std::any_of(arrays.begin(), arrays.end(),
                                   [](const ArrayFacts* array) { return array->is_label; }))
    return "";
  constexpr const char* advice =
      "call it \"target\" in the file, or as the model's output, and the others are taken for "
      "inputs where they are as many";
  if (labels == nullptr)
    return fmt::format("; no column has a name that says it is what is learned: {}", advice);
  return fmt::format("; \"{}\" is taken for what is learned, since it goes with the loss: {}",
                     labels->name, advice);
}

}  // namespace

std::string left_out_text(const std::vector<std::string>& columns) {
  if (columns.empty()) return "";
  return fmt::format("; without {}, {}: each of the values is there once",
                     joined(columns, ", ", quoted_column),
                     columns.size() == 1 ? "an identifier" : "identifiers");
}

void offer_columns(const std::vector<InputFacts>& inputs, const DataFacts& data,
                   const LossChoice& loss, FieldGuesses& guesses) {
  std::set<std::string> taken;
  for (const ArrayFacts* array : guesses.used)
    taken.insert(array->columns.begin(), array->columns.end());
  const ArrayFacts* labels = loss.todo.empty() ? loss.labels.from : nullptr;
  if (labels != nullptr) taken.insert(labels->columns.begin(), labels->columns.end());
  const ColumnList untaken = untaken_columns(data, taken);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    FieldGuess& field = guesses.fields[i];
    const Shape& shape = inputs[i].sample.shape;
    if (!field.lacks_array || shape.size() != 1 || shape[0] < 1) continue;
    const auto wanted = static_cast<std::size_t>(shape[0]);
    ColumnList columns = elements_of(inputs[i], untaken);
    const std::vector<std::string> left_out = leave_identifiers_out(columns, wanted);
    if (columns.empty()) continue;
    ArrayFacts offered = stacked_columns(field.name, columns);
    if (may_be_times(columns)) offered.made_by = {"unix_time"};
    InputFacts as_many = inputs[i];
    as_many.sample.shape = offered.sample.shape;
    const Functions functions = functions_for(as_many, offered);
    FieldGuess value;
    value.from = &offered;
    if (functions.why_not.empty()) value.as = functions.as;
    field.offer = field_toml(value);
    field.offered = offered.columns;
    field.todo = which_columns(inputs[i], offered, untaken, wanted) + left_out_text(left_out) +
                 of_target(labels, loss, data);
  }
}

}  // namespace tandem::api
