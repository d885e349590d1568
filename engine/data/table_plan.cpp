#include "engine/data/table_plan.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engine/config/keys/config_value.h"
#include "engine/formats/files.h"
#include "engine/formats/table_form.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/operators/checks.h"

namespace tandem {
namespace {

/// The largest value of an integer type, at most that of int64.
std::int64_t greatest_of(DType dtype) {
  std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(std::int64_t)) {
      greatest = static_cast<std::int64_t>(std::numeric_limits<T>::max());
    }
  });
  return greatest;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 40;
  return joined(std::span(names).first(std::min(names.size(), most))) +
         (names.size() > most ? ", …" : "");
}

/// Whether both read a cell as the same values.
bool read_alike(const TableField& a, const TableField& b) {
  return a.missing == b.missing && a.spelling == b.spelling &&
         (a.missing.size() < 2 || a.columns == b.columns) && a.separator == b.separator &&
         a.most == b.most &&
         std::equal(a.numeric.begin(), a.numeric.end(), b.numeric.begin(), b.numeric.end(),
                    [](const TableField::Number& x, const TableField::Number& y) {
                      return x.transform.text == y.transform.text;
                    });
}

/// Counts a value as often as it is in the files, however many fields read it.
void count_columns_once(std::vector<TableField>& fields) {
  for (TableField& field : fields) {
    if (!field.vocabulary) continue;
    for (const std::size_t column : field.columns) {
      const bool again = std::any_of(fields.begin(), fields.end(), [&](const TableField& other) {
        if (other.vocabulary != field.vocabulary) return false;
        const auto counted =
            other.columns.begin() + static_cast<std::ptrdiff_t>(other.counts.size());
        return std::find(other.columns.begin(), counted, column) != counted &&
               read_alike(other, field);
      });
      field.counts.push_back(!again);
    }
  }
}

}  // namespace

std::string vocabulary_name(const FieldConfig& field, const Transform& function) {
  const VocabularyPlan* const plan = function.function->vocabulary();
  return plan == nullptr ? "" : plan->name.empty() ? field.name : plan->name;
}

std::string vocabulary_text(const VocabularyPlan& plan, const std::string& file) {
  std::vector<std::string> options;
  if (!plan.name.empty()) options.push_back("name='" + plan.name + "'");
  if (!plan.name.empty() || plan.by_table || plan.by_value)
    options.push_back("by='" + std::string(plan.by()) + "'");
  const char quote = file.find('\'') == std::string::npos ? '\'' : '"';
  if (!file.empty()) options.push_back(std::string("file=") + quote + file + quote);
  return options.empty() ? "vocabulary" : "vocabulary(" + joined(options) + ")";
}

std::string text_without_file(const Transform& function) {
  const VocabularyPlan* const plan = function.function->vocabulary();
  return plan == nullptr || plan->file.empty() ? function.text : vocabulary_text(*plan, "");
}

std::string text_of_file(const VocabularyPlan& plan) {
  if (path_exists(plan.file) && !is_directory(plan.file)) return read_file(plan.file);
  throw Error(
      ErrorKind::data,
      Diagnostic{
          .message = "no such file, which a `vocabulary` takes its numbers from",
          .file = plan.file,
          .fix = "`tandem export` writes it to the folder of the model: keep them together"});
}

Vocabulary training_vocabulary(const VocabularyPlan& plan, const std::vector<std::string>& columns,
                               const ValueCounts& all, std::vector<std::int32_t>& ids) {
  if (plan.file.empty()) return Vocabulary(all, plan.least, ids, plan.by_table);
  try {
    const std::vector<std::string> no_names;
    Vocabulary taken =
        Vocabulary::parse(text_of_file(plan), plan.by_value ? no_names : columns, plan.by_table);
    ids.clear();
    for (std::int64_t i = 0; i < all.size(); ++i)
      ids.push_back(taken.id(all.column(i), all.value(i)));
    return taken;
  } catch (const std::invalid_argument& problem) {
    throw Error(ErrorKind::data,
                Diagnostic{.message = problem.what(),
                           .file = plan.file,
                           .expected = std::string("a vocabulary that counts by ") + plan.by() +
                                       ", of columns that the data has"});
  }
}

void FieldPlanner::add() {
  const std::size_t before = errors_.size();
  to_.name = field_.name;
  find_columns();
  for (const Transform& function : field_.as) take(function);
  to_.text = field_.name + "\n" + (field_.stacked ? "stacked" : "one");
  for (const std::string& column : field_.columns) to_.text += "\n" + column;
  for (std::size_t i = 0; i < taken_; ++i) to_.text += "\n" + field_.as[i].text;
  store();
  to_.text += "\n" + std::string(name_of(to_.stored.dtype));
  if (errors_.size() == before) plan_.fields.push_back(std::move(to_));
}

void FieldPlanner::report(const Where& where, std::string message, std::string fix) {
  errors_.push_back(at(where, "data.fields." + field_.name, std::move(message)));
  errors_.back().fix = std::move(fix);
}

void FieldPlanner::report(const std::string& problem, std::string fix) {
  report(function_->where, function_->text + problem, std::move(fix));
}

/// The text of the function that made the number.
std::string FieldPlanner::last_number() const {
  return to_.numeric.empty() ? field_.as[taken_ - 1].text : to_.numeric.back().transform.text;
}

void FieldPlanner::find_columns() {
  for (const std::string& name : field_.columns) {
    const std::size_t found = find_column(plan_.columns, name);
    if (found == std::string::npos) {
      std::string fix = did_you_mean(nearest_name(name, plan_.columns));
      const bool is_one = plan_.columns.size() == 1 &&
                          plan_.columns[0].find_first_of(known_separators) != std::string::npos;
      if (is_one) fix = "the cells are separated in another way: " + plan_.separator_fix;
      report(field_.where, "no column `" + name + "` in " + file_, std::move(fix));
      errors_.back().expected = "one of " + listed(plan_.columns);
      to_.columns.push_back(0);  // functions of the field count it, and the field is not planned
      continue;
    }
    to_.columns.push_back(found);
    if (plan_.columns[found] == name) continue;
    const std::string note = "`" + name + "` is the column `" + plan_.columns[found] + "`";
    if (std::find(plan_.notes.begin(), plan_.notes.end(), note) == plan_.notes.end())
      plan_.notes.push_back(note);
  }
}

void FieldPlanner::take(const Transform& function) {
  function_ = &function;
  if (!ended_ && function.function->take_text(*this)) {
    ++taken_;
    return;
  }
  ended_ = true;
  if (function.kind->of_text)
    report(": acts on text, but this is an array of numbers",
           "write it before the other functions");
  else
    to_.rest.push_back(function);
}

void FieldPlanner::split(const std::string& separator, std::int64_t most, std::int64_t pad) {
  split_ = function_;
  to_.separator = separator;
  to_.most = most;
  to_.pad = pad;
}

void FieldPlanner::read_text(TextReading reading, bool are_ids) {
  if (is_number()) report(": the text of a column is read once, before other functions of numbers");
  to_.reading = std::move(reading);
  whole_ = are_ids;
}

void FieldPlanner::take_number(const NumberFunction& function) {
  if (whole_) {
    report(": no function of numbers follows " + last_number() + ", whose whole numbers are ids");
  }
  whole_ = !is_float(function.result());
  to_.numeric.push_back({*function_, &function});
}

void FieldPlanner::end_as_number(DType dtype) {
  ended_ = true;
  number_ = dtype;
}

void FieldPlanner::end_as_ids() {
  if (is_number() && !whole_)
    report(": takes text or whole numbers", "bucketize after " + last_number());
  ended_ = true;
}

void FieldPlanner::end_as_ids(std::int64_t count,
                              FunctionRef<ValueIds(const std::string&)> of_column) {
  end_as_ids();
  to_.ids_below = count;
  for (const std::string& column : field_.columns) to_.ids.push_back(of_column(column));
}

void FieldPlanner::end_as_vocabulary(VocabularyPlan wanted) {
  end_as_ids();
  wanted.name = vocabulary_name(field_, *function_);
  std::size_t i = 0;
  while (i < plan_.vocabularies.size() && plan_.vocabularies[i].name != wanted.name) ++i;
  to_.vocabulary = i;
  if (i == plan_.vocabularies.size()) {
    plan_.vocabularies.push_back(std::move(wanted));
    return;
  }
  const VocabularyPlan& known = plan_.vocabularies[i];
  if (known.least == wanted.least && known.by_value == wanted.by_value &&
      known.by_table == wanted.by_table && known.file == wanted.file)
    return;
  const auto other = std::find_if(plan_.fields.begin(), plan_.fields.end(),
                                  [&](const TableField& field) { return field.vocabulary == i; });
  const auto options = [](const VocabularyPlan& v) {
    return "min_count " + std::to_string(v.least) + ", by " + v.by() +
           (v.file.empty() ? "" : ", file " + v.file);
  };
  report(": the vocabulary \"" + wanted.name + "\" has other options " +
             (other == plan_.fields.end() ? "before" : "in " + other->name) + ": " +
             options(known) + " there, " + options(wanted) + " here",
         "give both the same min_count, by and file, or this one another name");
}

void FieldPlanner::end_as_tokens(TokenPart part, const EncodeOptions& encoding) {
  if (is_number() || to_.most > 0)
    report(": takes the whole text", "write no function except `missing` before it");
  ended_ = true;
  to_.most = encoding.length;
  to_.part = part;
  to_.encoding = encoding;
  if (plan_.tokenizer_path.empty())
    return report(": no tokenizer is named", "data.tokenizer = \"tokenizer.json\"");
  try {
    if (!plan_.tokenizer) plan_.tokenizer = Tokenizer::read(plan_.tokenizer_path);
  } catch (const Error& error) {
    const auto& found = error.diagnostics();
    errors_.insert(errors_.end(), found.begin(), found.end());
    plan_.tokenizer_path.clear();  // once is enough
    return;
  }
  to_.tokenizer = plan_.tokenizer;
  const std::int64_t specials = encoding.adds_special ? to_.tokenizer->specials() : 0;
  if (specials >= encoding.length) {
    report(": the length leaves no room for tokens of the text",
           "more than the " + std::to_string(specials) + " special tokens");
  }
}

/// Whether functions of numbers act on the array, so that it is not to be rounded.
bool FieldPlanner::computes_on() const {
  if (to_.reading.number && !to_.rest.empty()) return true;  // float32 has no seconds of today
  for (const Transform& function : to_.rest) {
    if (function.function->computes_numbers()) return true;
    if (!function.function->only_copies({DType::float32, {}})) return false;
  }
  return false;
}

void FieldPlanner::store() {
  Shape shape;
  if (field_.stacked) shape.push_back(static_cast<std::int64_t>(to_.columns.size()));
  if (to_.most > 0) shape.push_back(to_.most);
  // Ids are stored in 32 bits where they fit and given out as int64, what exporters take.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  DType stored = DType::int32;
  to_.logical = DType::int64;
  if (!to_.makes_ids() && !whole_)
    stored = to_.logical = number_ == DType::float32 && computes_on() ? DType::float64 : number_;
  else if (!to_.ids.empty() && std::max(to_.ids_below, to_.pad) > most)
    stored = DType::int64;
  to_.stored = {stored, shape};
  if (to_.pad == 0) return;
  if (!is_integer(to_.logical)) {
    report(field_.where, "`pad` is an id, but the values are numbers");
  } else if (to_.pad > greatest_of(stored)) {
    report(split_->where, split_->text + ": `pad` does not fit");
    errors_.back().expected = "at most " + std::to_string(greatest_of(stored));
    errors_.back().got = std::to_string(to_.pad);
  }
}

TablePlan plan_table(const DataConfig& config, std::vector<std::string> columns,
                     std::vector<Diagnostic>& errors) {
  TablePlan plan;
  plan.columns = std::move(columns);
  plan.tokenizer_path = config.table()->tokenizer;
  plan.cells = config.table()->cells;
  const auto* const csv = std::get_if<CsvTable>(&config.kind);
  plan.separator_fix = csv == nullptr ? "data.kind = \"csv\" finds it, data.separator says it"
                       : csv->separator == Separator::automatic
                           ? "data.separator says it"
                           : "data.separator = \"auto\" finds it";
  std::string file = "the files";
  for (const SplitConfig* split : {&config.eval, &config.train}) {
    if (!split->files.empty() && !split->files[0].paths.empty()) file = split->files[0].paths[0];
  }
  for (const FieldConfig& field : config.fields) FieldPlanner(field, file, plan, errors).add();
  count_columns_once(plan.fields);
  if (config.fields.empty()) {
    errors.push_back(at(config.where, "data.fields", "nothing says what the columns are for"));
  }
  return plan;
}

}  // namespace tandem
