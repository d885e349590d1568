// Chooses columns of a table for an input that no array fits: uses them where their number fits,
// else offers them, with names and functions to change.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "api/init/column_tables.h"
#include "api/init/data/table_arrays.h"
#include "api/init/fields.h"
#include "api/init/loss.h"
#include "engine/data/cells/dates.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

std::string quoted_column(const std::string& name) { return "\"" + name + "\""; }

/// Single columns that no field uses and that are not named like a label.
ColumnList untaken_columns(const DataFacts& data, const std::set<std::string>& taken) {
  ColumnList columns;
  for (const ArrayFacts* array : usable_arrays(data)) {
    const bool is_column = array->columns.size() == 1 && array->sample.shape.empty();
    if (is_column && !array->is_label && !taken.contains(array->columns[0]))
      columns.push_back(array);
  }
  return columns;
}

/// The columns that could each be an element of the input's samples.
ColumnList elements_of(const InputFacts& input, ColumnList columns) {
  InputFacts element = input;
  element.sample.shape.clear();
  std::erase_if(columns, [&](const ArrayFacts* array) { return !misfit(element, *array).empty(); });
  return columns;
}

bool is_date(const ArrayFacts* column) { return !column->made_by.empty(); }

/// Plain numbers that unix_time would reject as seconds.
ColumnList taken_for_dates(const ColumnList& columns) {
  ColumnList taken;
  for (const ArrayFacts* column : columns) {
    const Numbers& numbers = column->numbers;
    if (!is_date(column) && !are_seconds(numbers.least, numbers.most)) taken.push_back(column);
  }
  return taken;
}

/// Leaves identifiers out where there are more columns than needed, and enough without them.
std::vector<std::string> leave_identifiers_out(ColumnList& columns, std::size_t wanted) {
  auto [kept, left_out] = without_identifiers(columns);
  if (columns.size() <= wanted || kept.size() < wanted) return {};
  columns = std::move(kept);
  return left_out;
}

/// `untaken`: all unused columns, both the offered ones and those that do not fit.
std::string which_columns(const InputFacts& input, const ArrayFacts& offered,
                          const ColumnList& untaken, std::size_t wanted) {
  const std::string type = fmt::format("{}[{}]", name_of(input.sample.dtype), joined(input.dims));
  const std::size_t count = offered.columns.size();
  const std::string names = source_toml(offered);
  if (count == wanted)
    return fmt::format("are the columns {} those of {}? Their number is right", names, type);
  if (count < wanted)
    return fmt::format("{} takes {} columns, and {} are left: {}{}", type, wanted, count, names,
                       passed_over_for_text(input, untaken));
  return fmt::format(
      "which {} of the {} columns {} are those of {}? Remove the others, also in the lists of a "
      "function",
      wanted, count, names, type);
}

/// How the target column was found, where its name does not show it.
std::string of_target(const ArrayFacts* labels, const LossChoice& loss, const DataFacts& data) {
  const std::vector<const ArrayFacts*> arrays = usable_arrays(data);
  if (loss.of_model || std::any_of(arrays.begin(), arrays.end(),
                                   [](const ArrayFacts* array) { return array->is_label; }))
    return "";
  constexpr const char* advice =
      "name it \"target\" in the file, or like the model's output; then the others become inputs "
      "if their number is right";
  if (labels == nullptr) return fmt::format("; no column has the name of a label: {}", advice);
  return fmt::format("; \"{}\" is taken as the label, since it fits the loss: {}", labels->name,
                     advice);
}

}  // namespace

std::string left_out_text(const std::vector<std::string>& columns) {
  if (columns.empty()) return "";
  return fmt::format("; without {}, {}: each of its values occurs once",
                     joined(columns, ", ", quoted_column),
                     columns.size() == 1 ? "an identifier" : "identifiers");
}

namespace {

/// Columns that are offered to one input or used for it.
struct Offer {
  ColumnList columns;
  std::vector<std::string> left_out;  // identifiers
  std::string why;  // why these columns are offered; "": their number and type fit
};

/// Whether the columns are certain: their number is that of the input, and no other open input
/// could use them.
bool are_the_only(const std::vector<InputFacts>& inputs, const FieldGuesses& guesses,
                  std::size_t place, const Offer& offer) {
  if (!offer.why.empty() ||
      static_cast<std::int64_t>(offer.columns.size()) != inputs[place].sample.shape[0])
    return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const FieldGuess& other = guesses.fields[i];
    if (other.other_order) return false;
    if (i == place || !other.lacks_array || other.from != nullptr) continue;
    if (!elements_of(inputs[i], offer.columns).empty()) return false;
  }
  return true;
}

void make_offer(const std::vector<InputFacts>& inputs, std::size_t place, const Offer& offer,
                const ColumnList& untaken, const std::string& target, FieldGuesses& guesses) {
  const InputFacts& input = inputs[place];
  FieldGuess& field = guesses.fields[place];
  const bool takes_floats = is_float(input.sample.dtype);
  auto offered = std::make_shared<ArrayFacts>(stacked_columns(field.name, offer.columns));
  const bool has_dates = takes_floats && std::any_of(offer.columns.begin(), offer.columns.end(),
                                                     [](const auto* c) { return is_date(c); });
  const ColumnList misread = has_dates ? taken_for_dates(offer.columns) : ColumnList();
  if (has_dates && misread.empty()) offered->made_by = {"unix_time"};
  InputFacts as_many = input;
  as_many.sample.shape = offered->sample.shape;
  const Functions functions = functions_for(as_many, *offered);
  const std::string type = fmt::format("{}[{}]", name_of(input.sample.dtype), joined(input.dims));
  const std::string left_out = left_out_text(offer.left_out);
  const bool is_taken = takes_floats && target.empty() && misread.empty() &&
                        functions.why_not.empty() && are_the_only(inputs, guesses, place, offer);
  if (is_taken) {
    field.from = offered.get();
    field.own = offered;
    field.as = functions.as;
    field.todo.clear();
    field.why = fmt::format("the remaining columns, as many as {} takes{}{}", type,
                            has_dates ? "; dates count in seconds since 1970" : "", left_out) +
                (functions.why.empty() ? "" : "; " + functions.why);
    return;
  }
  FieldGuess value;
  value.from = offered.get();
  if (functions.why_not.empty()) value.as = functions.as;
  field.offer = field_toml(value);
  field.offered = offered->columns;
  field.todo =
      which_columns(input, *offered, untaken, static_cast<std::size_t>(input.sample.shape[0])) +
      offer.why + left_out;
  if (!functions.why_not.empty()) field.todo += "; but " + functions.why_not;
  if (!misread.empty())
    field.todo += fmt::format(
        "; unix_time, which converts dates to numbers, would also read the numbers of {} as dates: "
        "write the dates as numbers into the file",
        joined(misread, ", ", [](const ArrayFacts* c) { return quoted_column(c->name); }));
  for (const FieldGuess& other : guesses.fields) {
    if (other.other_order)
      field.todo += fmt::format(
          "; the columns of \"{}\" have another order than its tables, and so may these",
          other.name);
  }
  field.todo += target;
}

}  // namespace

void offer_columns(const std::vector<InputFacts>& inputs, const DataFacts& data,
                   const LossChoice& loss, FieldGuesses& guesses) {
  std::set<std::string> taken;
  for (const ArrayFacts* array : guesses.used)
    taken.insert(array->columns.begin(), array->columns.end());
  const ArrayFacts* labels = loss.todo.empty() ? loss.labels.from : nullptr;
  if (labels != nullptr) taken.insert(labels->columns.begin(), labels->columns.end());
  const ColumnList untaken = untaken_columns(data, taken);
  const std::string target = of_target(labels, loss, data);
  const std::optional<ColumnSplit> split = split_columns(inputs, guesses, untaken);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].sample.shape;
    if (!guesses.fields[i].lacks_array || shape.size() != 1 || shape[0] < 1) continue;
    const auto wanted = static_cast<std::size_t>(shape[0]);
    Offer offer;
    if (split && (i == split->ids || i == split->numbers)) {
      offer.columns = i == split->ids ? split->of_ids : split->of_numbers;
      offer.why = fmt::format(
          ", if the whole numbers of {} are words, which is the only way in which all columns have "
          "a place",
          joined(split->words, ", ", [](const ArrayFacts* c) { return quoted_column(c->name); }));
    } else {
      offer.columns = elements_of(inputs[i], untaken);
      offer.left_out = leave_identifiers_out(offer.columns, wanted);
    }
    if (!offer.columns.empty()) make_offer(inputs, i, offer, untaken, target, guesses);
  }
}

}  // namespace tandem::api
