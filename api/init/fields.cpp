#include "api/init/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>

#include "api/init/column_tables.h"
#include "api/init/data/data_look.h"
#include "api/init/roles.h"
#include "engine/config/keys/config_value.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

std::string quoted_names(const std::vector<const ArrayFacts*>& arrays) {
  std::string text;
  for (const ArrayFacts* array : arrays)
    text +=
        fmt::format("{}\"{}\" {}", text.empty() ? "" : ", ", array->name, to_string(array->sample));
  return text;
}

/// What an array holds, for messages: "the values of "x"", or its columns by name.
std::string array_text(const ArrayFacts& array) {
  constexpr std::size_t most = 8;
  if (!array.stacked) return fmt::format("the values of \"{}\"", array.name);
  const auto quoted = [](const std::string& name) { return "\"" + name + "\""; };
  const std::span<const std::string> shown(array.columns);
  return fmt::format("the columns {}{}",
                     joined(shown.first(std::min(most, shown.size())), ", ", quoted),
                     shown.size() > most ? fmt::format(" and {} more", shown.size() - most) : "");
}

class Matching {
 public:
  Matching(const std::vector<InputFacts>& inputs, const DataFacts& data)
      : inputs_(inputs), data_(data), free_(usable_arrays(data)), unread_(data.unread) {
    lacks_target_ = std::none_of(free_.begin(), free_.end(),
                                 [](const ArrayFacts* array) { return array->is_label; }) &&
                    std::any_of(free_.begin(), free_.end(),
                                [](const ArrayFacts* array) { return !array->columns.empty(); });
    const auto is_whole = [](const InputFacts& input) {  // free extents need samples to bind them
      return std::none_of(input.sample.shape.begin(), input.sample.shape.end(),
                          [](std::int64_t extent) { return extent < 0; });
    };
    const bool is_table = data.rows_read > 0 && data.tokenizer.empty();
    const bool are_said =
        is_table && std::all_of(inputs.begin(), inputs.end(), [&](const auto& input) {
          return is_whole(input) && data.said.fields.contains(input.name);
        });
    for (const InputFacts& input : inputs) {
      result_.fields.push_back({.name = input.name});
      result_.fields.back().is_said = are_said;
    }
    const auto is_said = [&](const ArrayFacts* array) {
      return are_said &&
             std::any_of(array->columns.begin(), array->columns.end(),
                         [&](const auto& column) { return data.said.takes(inputs, column); });
    };
    std::copy_if(free_.begin(), free_.end(), std::inserter(result_.used, result_.used.end()),
                 is_said);
    std::erase_if(free_, is_said);
  }

  FieldGuesses run() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      match_name(i, [](const std::string& name) { return name; });
    for (std::size_t i = 0; i < inputs_.size(); ++i) match_name(i, plain_name);
    // Repeats, because an array that fits only one input may, once taken, leave a single array for
    // another.
    for (std::size_t round = 0; round < inputs_.size(); ++round) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) match_form(i);
    }
    derive_fields(inputs_, data_, result_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) explain(i);
    return std::move(result_);
  }

 private:
  bool is_open(std::size_t i) const {
    const FieldGuess& field = result_.fields[i];
    return field.from == nullptr && field.todo.empty() && !field.is_left_out && !field.is_said;
  }
  std::vector<const ArrayFacts*> fitting(std::size_t i) const {
    std::vector<const ArrayFacts*> arrays;
    // A model with its own loss has labels as an input.
    const bool takes_labels = names_label(inputs_[i].name);
    for (const ArrayFacts* array : free_) {
      if (array->is_label && !takes_labels) continue;
      // Masks and positions only fit inputs of the same role, whatever their form.
      const Role role = array->sample.shape.size() == 1 ? role_named(array->name) : Role::none;
      if (role != role_of(inputs_[i])) continue;
      if (misfit(inputs_[i], *array).empty()) arrays.push_back(array);
    }
    return arrays;
  }
  void take(std::size_t i, const ArrayFacts* array, const std::string& why) {
    FieldGuess& field = result_.fields[i];
    const Functions functions = functions_for(inputs_[i], *array);
    if (!functions.why_not.empty()) {
      field.todo =
          fmt::format("{} seem to be meant, but {}", array_text(*array), functions.why_not);
      offer_tables(inputs_[i], *array, field);
    } else {
      field.from = array;
      field.as = functions.as;
      field.rows = functions.rows;
      field.why = why + left_out_text(array->left_out) +
                  (functions.why.empty() ? "" : "; " + functions.why);
      bind_free(inputs_[i], *array);
    }
    result_.used.insert(array);
    std::erase_if(free_, [&](const ArrayFacts* other) {
      if (other == array) return true;
      // Arrays that are made of the same text do not exclude each other.
      if (!other->made_by.empty() && !array->made_by.empty()) return false;
      // A column serves only one field, by itself or stacked.
      return std::any_of(other->columns.begin(), other->columns.end(), [&](const auto& column) {
        return std::count(array->columns.begin(), array->columns.end(), column) > 0;
      });
    });
  }
  void bind_free(const InputFacts& input, const ArrayFacts& array) {
    for (std::size_t axis = 0; axis < input.sample.shape.size(); ++axis) {
      if (input.sample.shape[axis] < 0 && axis + 1 < input.dims.size())
        result_.bind.emplace(input.dims[axis + 1], array.sample.shape[axis]);
    }
  }
  template <class Form>
  void match_name(std::size_t i, const Form& form) {
    if (!is_open(i)) return;
    std::vector<const ArrayFacts*> named;
    for (const ArrayFacts* array : free_) {
      if (form(array->name) == form(inputs_[i].name)) named.push_back(array);
    }
    if (named.size() != 1) return;
    const std::string why_not = misfit(inputs_[i], *named[0]);
    if (why_not.empty())
      take(i, named[0], named[0]->made.empty() ? "the array of this name" : named[0]->made);
    else
      result_.fields[i].todo =
          fmt::format("the array \"{}\" does not fit: {}", named[0]->name, why_not);
  }
  void match_form(std::size_t i) {
    if (!is_open(i) || data_.choices.contains(inputs_[i].name)) return;
    const std::vector<const ArrayFacts*> arrays = fitting(i);
    if (arrays.size() != 1) return;
    for (std::size_t other = 0; other < inputs_.size(); ++other) {
      if (other != i && is_open(other) && misfit(inputs_[other], *arrays[0]).empty() &&
          fitting(other).size() == 1)
        return;  // two inputs could use this only array
    }
    take(i, arrays[0],
         arrays[0]->made.empty()
             ? fmt::format("the only array that fits {} by type and shape", to_string_free(i))
             : arrays[0]->made);
  }
  std::string to_string_free(std::size_t i) const {
    const InputFacts& input = inputs_[i];
    return fmt::format("{}[{}]", name_of(input.sample.dtype), joined(input.dims));
  }
  void explain(std::size_t i) {
    if (!is_open(i)) return;
    const std::vector<const ArrayFacts*> arrays = fitting(i);
    FieldGuess& field = result_.fields[i];
    if (arrays.size() > 1) {
      field.todo =
          fmt::format("several arrays fit {}: {}", to_string_free(i), quoted_names(arrays));
    } else if (arrays.size() == 1) {
      field.todo =
          fmt::format("\"{}\" is the only array left that fits several inputs", arrays[0]->name);
    } else {
      field.lacks_array = true;
      field.todo = fmt::format("no array fits {}; the data has {}", to_string_free(i),
                               free_.empty() ? "no more" : quoted_names(free_)) +
                   passed_over_for_text(inputs_[i], free_);
      for (const auto& [name, why] : unread_)
        field.todo += fmt::format("; \"{}\" is left out: {}", name, why);
      if (lacks_target_) {
        field.todo +=
            "; no column has the name of a label: name it \"target\", or like the model's output; "
            "then the others become inputs if their number is right";
      }
    }
  }

  const std::vector<InputFacts>& inputs_;
  const DataFacts& data_;
  std::vector<const ArrayFacts*> free_;
  const std::map<std::string, std::string>& unread_;
  bool lacks_target_;  // there are columns, and none is named like a target
  FieldGuesses result_;
};

void take_element_rows(const ModelFacts& model, InputFacts& input) {
  bool may_grow = true;
  for (const TableFacts& table : model.tables) {
    if (table.input != input.name) continue;
    input.tables[table.path.empty() ? table.name : table.path] = table.rows;
    may_grow = may_grow && table.may_grow;
  }
  if (!may_grow) input.tables.clear();
  const auto found = model.input_rows.find(input.name);
  if (found == model.input_rows.end() || found->second.of_elements.empty()) return;
  input.tables.clear();
  input.element_rows = found->second.of_elements;
  input.element_tables = found->second.tables;
  input.table_rows = *std::min_element(input.element_rows.begin(), input.element_rows.end());
}

}  // namespace

std::vector<InputFacts> inputs_of(const ModelFacts& model) {
  std::vector<InputFacts> inputs;
  const auto rows_of = [&](const std::string& name) {
    std::int64_t rows = 0;
    for (const TableFacts& table : model.tables) {
      if (table.input == name) rows = rows == 0 ? table.rows : std::min(rows, table.rows);
    }
    return rows;
  };
  std::set<std::string> read;
  for (const NamedValue& input : model.imported.graph.inputs) read.insert(input.name);
  std::set<std::string> listed;
  for (const PortSummary& port : model.imported.summary.inputs) {
    listed.insert(port.name);
    if (model.free.empty() && !read.contains(port.name)) continue;  // reaches no output
    inputs.push_back({port.name, model.sample_of(port), port.dims, rows_of(port.name)});
    take_element_rows(model, inputs.back());
  }
  for (const NamedValue& input : model.imported.graph.inputs) {  // inputs of training_info
    if (listed.contains(input.name)) continue;
    TensorType sample = model.imported.graph.type(input.value);
    std::vector<std::string> dims;
    for (const std::int64_t extent : sample.shape) dims.push_back(std::to_string(extent));
    if (!sample.shape.empty()) sample.shape.erase(sample.shape.begin()), dims[0] = "batch";
    inputs.push_back({input.name, sample, dims, rows_of(input.name)});
  }
  return inputs;
}

std::vector<const ArrayFacts*> usable_arrays(const DataFacts& data) {
  const bool has_training = std::any_of(data.arrays.begin(), data.arrays.end(),
                                        [](const auto& a) { return names_training(a.name); });
  std::vector<const ArrayFacts*> arrays;
  for (const ArrayFacts& array : data.arrays) {
    const bool held_out = names_held_out(array.name) && !names_training(array.name);
    if (array.rows > 0 && !(has_training && held_out)) arrays.push_back(&array);
  }
  return arrays;
}

FieldGuesses guess_fields(const std::vector<InputFacts>& inputs, const DataFacts& data) {
  return Matching(inputs, data).run();
}

std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : without_split(name)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) plain += c;
  }
  if (plain.size() > 2 && plain.ends_with("s")) plain.pop_back();
  return plain;
}

std::string source_toml(const ArrayFacts& array) {
  if (!array.stacked) return toml_string(array.source.empty() ? array.name : array.source);
  std::vector<std::string> names;
  std::size_t i = 0;
  while (i < array.columns.size()) {
    // "p0", "p1", .. "p783" are written as one text with braces.
    const std::string& first = array.columns[i];
    std::size_t digits = first.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(first[digits - 1])) != 0) --digits;
    std::size_t run = 1;
    if (digits < first.size() && first.size() - digits < 10) {
      const std::string prefix = first.substr(0, digits);
      const std::int64_t start = std::stoll(first.substr(digits));
      const auto name = [&](std::size_t k) {
        return prefix + std::to_string(start + static_cast<std::int64_t>(k));
      };
      if (name(0) == first) {
        while (i + run < array.columns.size() && array.columns[i + run] == name(run)) ++run;
      }
      if (run > 2) {
        names.push_back(
            fmt::format("{}{{{}..{}}}", prefix, start, start + static_cast<std::int64_t>(run) - 1));
      } else {
        run = 1;
      }
    }
    if (run == 1) names.push_back(first);
    i += run;
  }
  return "[ " + joined(names, ", ", toml_string) + " ]";
}

std::string field_toml(const FieldGuess& field) {
  const std::string source = source_toml(*field.from);
  if (field.as.empty() && !field.from->stacked) return source;
  const std::string as =
      field.as.empty() ? "" : ", as = [ " + joined(field.as, ", ", toml_string) + " ]";
  return fmt::format("{{ from = {}{} }}", source, as);
}

}  // namespace tandem::api
