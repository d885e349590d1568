// Checks a text table for `tandem data check`: unreadable rows, and the contents of columns.
#include <algorithm>
#include <cassert>
#include <exception>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "api/commands/check/checked_data.h"
#include "engine/config/keys/config_value.h"
#include "engine/config/keys/key_forms.h"
#include "engine/data/cells/alike_words.h"
#include "engine/data/cells/cut_tokens.h"
#include "engine/data/cells/unknown_words.h"
#include "engine/data/encode_files.h"
#include "engine/data/shown_problems.h"
#include "engine/data/table_file.h"

namespace tandem::api {
namespace {

/// The line of train.toml for a field, with a function before its own ones.
std::string field_with(const DataConfig& config, const std::string& name, const char* function) {
  for (const FieldConfig& field : config.fields) {
    if (field.name != name) continue;
    std::vector<std::string> as{function};
    for (const Transform& transform : field.as) as.push_back(transform.text);
    return fmt::format(
        "data.fields.{} = {{ from = {}, as = {}{} }}", toml_key(name),
        field.stacked ? toml_list_of_strings(field.columns) : toml_string(field.from),
        toml_list_of_strings(as),
        field.out_of_range == OutOfRange::zero ? ", out_of_range = \"zero\"" : "");
  }
  return "";
}

/// Makes the vocabularies with the ids that training would assign.
std::vector<Vocabulary> check_vocabularies(const TablePlan& plan,
                                           const std::vector<ValueCounts>& all, CheckedData& to) {
  std::vector<Vocabulary> vocabularies;
  for (std::size_t v = 0; v < all.size(); ++v) {
    std::int64_t rare = 0, distinct = 0;
    for (std::int64_t i = 0; i < all[v].size(); ++i) {
      if (all[v].times(i) == 0) continue;  // occurs only in bad rows
      ++distinct;
      const bool frequent = all[v].times(i) >= plan.vocabularies[v].least;
      rare += frequent ? 0 : all[v].times(i);
    }
    std::vector<std::int32_t> ids;
    vocabularies.push_back(training_vocabulary(plan.vocabularies[v], plan.columns, all[v], ids));
    const Vocabulary& made = vocabularies.back();
    to.vocabularies.push_back({{"name", plan.vocabularies[v].name},
                               {"by", plan.vocabularies[v].by()},
                               {"rows", made.rows()},
                               {"distinct", distinct},
                               {"rare_values", rare}});
  }
  return vocabularies;
}

/// Warns about words of the training data that are the same but for blanks or the case of letters.
void check_spellings(const DataConfig& config, const TablePlan& plan,
                     const std::vector<ValueCounts>& all, CheckedData& to) {
  std::set<std::pair<std::size_t, std::size_t>> told;  // vocabulary and column
  for (const TableField& field : plan.fields) {
    const bool are_characters = field.most > 0 && field.separator.empty();
    if (!field.vocabulary || are_characters) continue;
    const ValueCounts& values = all[*field.vocabulary];
    const bool by_value = plan.vocabularies[*field.vocabulary].by_value;
    for (const std::size_t column : field.columns) {
      const std::size_t of = by_value ? 0 : column;
      if (!told.emplace(*field.vocabulary, of).second) continue;
      std::vector<CountedWord> words;
      for (std::int64_t n = 0; n < values.size(); ++n) {
        if (values.column(n) == of && values.times(n) > 0)
          words.push_back({values.value(n), values.times(n)});
      }
      const auto warn = [&](const std::optional<AlikeWords>& alike, std::string_view what,
                            const char* function) {
        if (!alike) return;
        to.warnings.push_back(
            fmt::format("training data: of `{}`, {}, and have a row each: {} makes them one",
                        plan.columns[column], alike_text(*alike, what),
                        field_with(config, field.name, function)));
      };
      warn(alike_but_for_blanks(words), only_in_blanks, "trim");
      warn(alike_but_for_case(words), only_in_case, "lower");
    }
  }
}

void add_failure(const std::exception_ptr& failure, CheckedData& to) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    to.broken = true;
    to.problems.insert(to.problems.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
}

/// A split without samples would end training too, so it counts as broken.
void refuse_empty(const CheckedSplit& split, const std::vector<std::string>& paths,
                  CheckedData& to) {
  if (split.samples > 0 || to.broken) return;
  to.broken = true;
  Diagnostic d{.message = "there are no samples"};
  if (!paths.empty()) d.file = paths[0];
  to.problems.push_back(std::move(d));
}

CheckedSplit check_files(const DataConfig& config, const TablePlan& plan, const SplitConfig& split,
                         const OpenOptions& options, CheckedData& to,
                         std::vector<ValueCounts>& all) {
  CheckedSplit result;
  std::vector<std::vector<ColumnStatistics>> found;
  std::vector<std::string> paths;
  for (const ArrayFiles& files : split.files) {
    paths.insert(paths.end(), files.paths.begin(), files.paths.end());
  }
  EncodeFilesOptions encode;
  encode.reads_all = true;
  encode.threads = options.threads;
  EncodedFiles encoded = encode_files(config, plan, paths, encode);
  for (const TableField& field : plan.fields) {
    CheckedField& checked = result.fields.emplace_back();
    checked.name = field.name;
    checked.sample = {field.logical, field.stored.shape};
    for (const std::size_t column : field.columns) {
      checked.columns.emplace_back().name = plan.columns[column];
      checked.columns.back().limit = field.tokenizer           ? "tokens beyond `length` of tokens"
                                     : field.separator.empty() ? "characters beyond `max` of "
                                                                 "characters"
                                                               : "values beyond `max` of split";
    }
    found.emplace_back(field.columns.size());
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EncodedFile& file = encoded.files[i];
    tell_others(file.problems, 0, file.bad, "rows");
    result.samples += file.rows;
    result.bad += file.bad;
    to.problems.insert(to.problems.end(), file.problems.begin(), file.problems.end());
    if (encoded.failures[i]) add_failure(encoded.failures[i], to);
    for (std::size_t f = 0; f < file.fields.size(); ++f) {
      for (std::size_t c = 0; c < file.fields[f].size(); ++c) {
        const ColumnStatistics& s = file.fields[f][c];
        CheckedColumn& column = result.fields[f].columns[c];
        column.values += s.values;
        column.missing += s.empty;
        column.cut += s.cut;
        if (plan.fields[f].tokenizer)
          column.unknown = std::max<std::int64_t>(column.unknown, 0) + s.unknown;
        found[f][c].add(s);
        // Functions after `tokens` replace the ids: `positions` makes 0, 1, 2, … of them.
        if (plan.fields[f].tokenizer && !plan.fields[f].rest.empty()) continue;
        column.least = std::min(column.least, s.least);
        column.greatest = std::max(column.greatest, s.greatest);
      }
    }
  }
  refuse_empty(result, paths, to);
  const bool is_training = &split == &config.train;
  for (const std::string& note : cut_token_notes(plan, found))
    to.notes.push_back((is_training ? "training data: " : "held-out data: ") + note);
  for (std::string& warning : token_warnings(plan, found))
    to.warnings.push_back((is_training ? "training data: " : "") + std::move(warning));
  all = std::move(encoded.values);
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (!field.vocabulary) continue;
    const ValueCounts& values = all[*field.vocabulary];
    std::vector<std::int64_t> distinct(plan.columns.size());
    for (std::int64_t n = 0; n < values.size(); ++n) {
      if (values.times(n) > 0) ++distinct[values.column(n)];
    }
    for (std::size_t c = 0; c < field.columns.size(); ++c) {
      if (plan.vocabularies[*field.vocabulary].by_value) continue;
      result.fields[f].columns[c].distinct = distinct[field.columns[c]];
    }
  }
  return result;
}

/// Counts held-out words that training lacks, and adds the warnings about them. Where a vocabulary
/// has one id for a value in all columns, it is reported only for the first column.
void check_unknown_words(const TablePlan& plan, const std::vector<Vocabulary>& vocabularies,
                         const std::vector<ValueCounts>& held, CheckedSplit& split,
                         CheckedData& to) {
  std::vector<std::vector<ColumnStatistics>> fields;
  std::vector<bool> are_told(plan.vocabularies.size());
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    fields.emplace_back(field.columns.size());
    if (!field.vocabulary) continue;
    const std::size_t v = *field.vocabulary;
    const bool by_value = plan.vocabularies[v].by_value;
    for (std::size_t c = 0; c < field.columns.size(); ++c) {
      if (by_value && are_told[v]) continue;
      are_told[v] = true;
      ColumnStatistics& found = fields[f][c];
      const auto column = by_value ? 0u : static_cast<std::uint32_t>(field.columns[c]);
      for (std::int64_t n = 0; n < held[v].size(); ++n) {
        if (held[v].column(n) != column || held[v].times(n) == 0) continue;
        found.values += held[v].times(n);
        if (vocabularies[v].id(column, held[v].value(n)) > 0) continue;
        found.unknown += held[v].times(n);
        found.take_unknown(held[v].value(n));
      }
      split.fields[f].columns[c].unknown = found.unknown;
    }
  }
  for (std::string& warning : unknown_warnings(unknown_words(plan, fields, vocabularies)))
    to.warnings.push_back(std::move(warning));
}

/// The text that has an id in a column of a vocabulary; "" where no text has it.
using TextOfId = std::function<std::string(std::int64_t id)>;

/// A split that is only known by its statistics: it has the ranges of its fields, but no samples.
class TableRanges final : public tandem::DataSource {
 public:
  /// `path`: path of its file; "" where there are several. `vocabularies`: by their numbers; empty:
  /// it is unknown which ids occur. They must outlive this object.
  TableRanges(const CheckedSplit& split, const TablePlan& plan, std::string path,
              const std::vector<Vocabulary>& vocabularies, const OpenOptions& options)
      : path_(std::move(path)) {
    for (std::size_t f = 0; f < plan.fields.size(); ++f) {
      const TableField& field = plan.fields[f];
      if (!field.rest.empty()) continue;  // its values are known only after those functions
      TensorType type{field.logical, field.stored.shape};
      const auto wanted = options.integer_types.find(field.name);
      if (wanted != options.integer_types.end() && is_integer(type.dtype))
        type.dtype = wanted->second;
      fields_.push_back({field.name, type});
      columns_.push_back(split.fields[f].columns);
      std::vector<TextOfId>& texts = texts_.emplace_back();
      if (!field.vocabulary || vocabularies.empty()) continue;
      const Vocabulary& vocabulary = vocabularies[*field.vocabulary];
      const bool by_value = plan.vocabularies[*field.vocabulary].by_value;
      for (std::size_t c = 0; c < field.columns.size(); ++c) {
        const auto place = by_value ? 0u : static_cast<std::uint32_t>(field.columns[c]);
        CheckedColumn& column = columns_.back()[c];
        column.least = 0;
        column.greatest = static_cast<double>(vocabulary.greatest_id(place));
        texts.push_back([&vocabulary, place](std::int64_t id) {
          return std::string(vocabulary.text_of(place, id));
        });
      }
    }
  }

  const std::vector<tandem::DataField>& fields() const override { return fields_; }
  std::int64_t samples() const override { return 0; }
  void fill(int, std::span<const std::int64_t>, const Augmentation*, void*) const override {
    assert(false && "statistics hold no rows");
  }
  std::string describe(int, std::int64_t) const override { return path_; }
  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    const auto most = static_cast<double>(limit) - 1;
    const auto passes = [&](double value) {
      return ignore != nullptr && value == static_cast<double>(*ignore);
    };
    check(
        field, "0 to " + std::to_string(limit - 1),
        [&](const CheckedColumn& c) {
          return (c.least < 0 && !passes(c.least)) || (c.greatest > most && !passes(c.greatest));
        },
        limit);
  }
  void check_elements(int field, std::span<const std::int64_t> limits) const override {
    const std::vector<CheckedColumn>& columns = columns_[static_cast<std::size_t>(field)];
    const std::size_t each = limits.size() / std::max<std::size_t>(columns.size(), 1);
    std::vector<Diagnostic> problems;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto own = limits.subspan(c * each, each);
      for (const std::int64_t limit : own) {
        if (limit < 0) continue;
        const auto most = static_cast<double>(limit) - 1;
        add_misfit(
            field, c, "0 to " + std::to_string(limit - 1), limit,
            [&](const CheckedColumn& column) { return column.least < 0 || column.greatest > most; },
            problems);
        break;
      }
    }
    refuse(problems, field);
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    check(field, expected,
          [&](const CheckedColumn& c) { return c.least < least || c.greatest > most; });
  }

 private:
  /// Throws where columns with values are out of range.
  template <class IsBad>
  void check(int field, const std::string& expected, IsBad is_bad,
             std::int64_t first_bad = -1) const {
    std::vector<Diagnostic> problems;
    for (std::size_t c = 0; c < columns_[static_cast<std::size_t>(field)].size(); ++c)
      add_misfit(field, c, expected, first_bad, is_bad, problems);
    refuse(problems, field);
  }

  void refuse(std::vector<Diagnostic>& problems, int field) const {
    if (problems.empty()) return;
    BadValues error(ErrorKind::data, std::move(problems));
    for (const CheckedColumn& column : columns_[static_cast<std::size_t>(field)])
      error.greatest = std::max(error.greatest, column.greatest);
    throw error;
  }

  /// `first_bad`: an id that is out of range, whose text is reported; -1: none.
  template <class IsBad>
  void add_misfit(int field, std::size_t c, const std::string& expected, std::int64_t first_bad,
                  IsBad is_bad, std::vector<Diagnostic>& problems) const {
    const auto f = static_cast<std::size_t>(field);
    const CheckedColumn& column = columns_[f][c];
    if (column.least > column.greatest || !is_bad(column)) return;
    Diagnostic& d = problems.emplace_back();
    d.message = "out of range, `tandem train --dry-run` names rows";
    d.file = path_;
    d.path = "data.fields." + fields_[f].name;
    d.expected = expected;
    d.got = fmt::format("{:.6g} to {:.6g} in the column `{}`", column.least, column.greatest,
                        column.name);
    const bool has_texts = first_bad >= 0 && c < texts_[f].size();
    const std::string text = has_texts ? texts_[f][c](first_bad) : "";
    if (!text.empty()) d.got += fmt::format(", where \"{}\" is {}", text, first_bad);
  }

  std::string path_;
  std::vector<tandem::DataField> fields_;
  std::vector<std::vector<CheckedColumn>> columns_;  // by field
  std::vector<std::vector<TextOfId>> texts_;         // by field and column; empty: no vocabulary
};

std::string only_path(const SplitConfig& split) {
  const bool is_one = split.files.size() == 1 && split.files[0].paths.size() == 1;
  return is_one ? split.files[0].paths[0] : "";
}

}  // namespace

CheckedData check_table(const RunConfig& run, const OpenOptions& options) {
  const DataConfig& config = *run.data;
  CheckedData to;
  std::vector<Diagnostic> problems;
  std::string first;
  for (const SplitConfig* split : {&config.train, &config.eval}) {
    for (const ArrayFiles& files : split->files) {
      for (const std::string& path : files.paths) {
        if (first.empty()) first = path;
      }
    }
  }
  const TablePlan plan = plan_table(config, table_columns(config, first, &to.notes), problems);
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  to.notes.insert(to.notes.end(), plan.notes.begin(), plan.notes.end());
  std::vector<ValueCounts> values, held;
  to.splits.push_back(check_files(config, plan, config.train, options, to, values));
  to.splits.back().name = "train";
  const std::vector<Vocabulary> vocabularies = check_vocabularies(plan, values, to);
  check_spellings(config, plan, values, to);
  if (!config.eval.files.empty()) {
    to.splits.push_back(check_files(config, plan, config.eval, options, to, held));
    to.splits.back().name = "eval";
    check_unknown_words(plan, vocabularies, held, to.splits.back(), to);
  }
  const VocabularyRows rows = [&](const ShapeRule& rule) {
    for (const TableField& field : plan.fields) {
      if (field.vocabulary && field.name == rule.vocabulary)
        return vocabularies[*field.vocabulary].rows();
    }
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "no field with a vocabulary", .got = rule.vocabulary});
  };
  const std::vector<Vocabulary> no_vocabularies;
  const auto sources = [&](const OpenOptions& as_model) {
    std::vector<std::shared_ptr<const tandem::DataSource>> splits{std::make_shared<TableRanges>(
        to.splits[0], plan, only_path(config.train), vocabularies, as_model)};
    if (to.splits.size() > 1) {
      splits.push_back(std::make_shared<TableRanges>(to.splits[1], plan, only_path(config.eval),
                                                     no_vocabularies, as_model));
    }
    return splits;
  };
  compare_with_model(run, rows, sources, to);
  return to;
}

}  // namespace tandem::api
