#include "engine/data/cells/unknown_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/data/cells/cell_number.h"
#include "engine/data/cells/spelling.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

bool pads_row_0(const TablePlan& plan, std::size_t vocabulary) {
  return std::any_of(plan.fields.begin(), plan.fields.end(), [&](const TableField& field) {
    return field.vocabulary == vocabulary && field.most > 0 && field.pad == 0;
  });
}

}  // namespace

std::string nearest_word(std::string_view word, std::int64_t count,
                         FunctionRef<std::string_view(std::int64_t)> known) {
  constexpr std::int64_t most_compared = 20'000;  // letter by letter
  const std::string_view plain = without_blanks(word);
  const std::string lower = lower_text(plain);
  std::string buffer;
  const std::optional<double> number = read_double(plain, {}, buffer);
  std::string_view by_case, by_number;
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string_view other = known(i);
    const std::string_view other_plain = without_blanks(other);
    if (other_plain == plain && !plain.empty()) return std::string(other);
    if (by_case.empty() && !plain.empty() && lower_text(other_plain) == lower) by_case = other;
    if (number && by_number.empty() && read_double(other_plain, {}, buffer) == number)
      by_number = other;
    if (count <= most_compared) all.emplace_back(other);
  }
  if (!by_case.empty()) return std::string(by_case);
  if (!by_number.empty()) return std::string(by_number);
  return number ? "" : nearest_name(word, all);
}

std::vector<UnknownWords> unknown_words(const TablePlan& plan,
                                        const std::vector<std::vector<ColumnStatistics>>& fields,
                                        const std::vector<Vocabulary>& vocabularies) {
  std::vector<UnknownWords> result;
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (!field.vocabulary && !field.tokenizer) continue;
    for (std::size_t c = 0; c < field.columns.size(); ++c) {
      const ColumnStatistics& found = fields[f][c];
      if (found.unknown == 0) continue;
      UnknownWords& words = result.emplace_back();
      words.field = field.name;
      words.column = plan.columns[field.columns[c]];
      words.values = found.values;
      words.unknown = found.unknown;
      if (field.tokenizer) {
        for (const std::string& text : found.unknown_examples) words.examples.push_back({text, ""});
        continue;
      }
      const std::size_t v = *field.vocabulary;
      words.are_tokens = false;
      words.is_untrained = plan.vocabularies[v].least <= 1 && !pads_row_0(plan, v);
      const Vocabulary& vocabulary = vocabularies.at(v);
      std::vector<std::int64_t> ids;  // the words of this column
      const auto column = static_cast<std::uint32_t>(field.columns[c]);
      for (std::int64_t id = 1; id < vocabulary.size(); ++id) {
        if (plan.vocabularies[v].by_value || vocabulary.column(id) == column) ids.push_back(id);
      }
      for (const std::string& word : found.unknown_examples) {
        words.examples.push_back(
            {word, nearest_word(word, static_cast<std::int64_t>(ids.size()), [&](std::int64_t i) {
               return vocabulary.value(ids[static_cast<std::size_t>(i)]);
             })});
      }
    }
  }
  return result;
}

std::vector<std::string> unknown_warnings(const std::vector<UnknownWords>& all) {
  std::vector<std::string> warnings;
  for (const UnknownWords& words : all) {
    if (words.share() <= most_unknown) continue;
    std::string examples, known_with;
    for (const UnknownWords::Example& example : words.examples) {
      examples += (examples.empty() ? ": " : ", ") + shown_cell(example.word);
      if (!example.nearest.empty()) examples += " (known is " + shown_cell(example.nearest) + ")";
      const std::string function = spelling_function(example.word, example.nearest);
      if (known_with.empty() && !function.empty())
        known_with = fmt::format("; a model that is trained with as = [ \"{}\", … ] knows {}",
                                 function, shown_cell(example.word));
    }
    if (words.are_tokens) {
      warnings.push_back(fmt::format(
          "{} of {} tokens of `{}` ({:.3g} %, field {}) are not in the vocabulary{}", words.unknown,
          words.values, words.column, 100 * words.share(), words.field, examples));
      continue;
    }
    warnings.push_back(fmt::format(
        "{} of {} values of `{}` ({:.3g} %, field {}) are not in the vocabulary of the training "
        "data{}; they share row 0{}{}",
        words.unknown, words.values, words.column, 100 * words.share(), words.field, examples,
        words.is_untrained ? ", which no training sample has" : "", known_with));
  }
  return warnings;
}

std::vector<std::string> token_warnings(const TablePlan& plan,
                                        const std::vector<std::vector<ColumnStatistics>>& fields) {
  std::vector<std::vector<ColumnStatistics>> of_tokens = fields;
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    if (!plan.fields[f].tokenizer) of_tokens[f].assign(fields[f].size(), {});
  }
  return unknown_warnings(unknown_words(plan, of_tokens, {}));
}

std::vector<std::string> taken_warnings(const TablePlan& plan,
                                        const std::vector<std::vector<ColumnStatistics>>& fields) {
  std::vector<std::string> warnings;
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (!field.vocabulary) continue;
    const std::string& file = plan.vocabularies[*field.vocabulary].file;
    for (std::size_t c = 0; c < field.columns.size() && !file.empty(); ++c) {
      const ColumnStatistics& found = fields[f][c];
      if (found.unknown == 0) continue;
      warnings.push_back(fmt::format("{} of {} values of `{}` are not in {}; they share row 0",
                                     found.unknown, found.values, plan.columns[field.columns[c]],
                                     file));
    }
  }
  return warnings;
}

std::string untrained_note(const TablePlan& plan,
                           const std::vector<std::vector<ColumnStatistics>>& fields) {
  std::vector<std::string> names;
  std::int64_t least = 1;
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (!field.vocabulary || pads_row_0(plan, *field.vocabulary)) continue;
    if (!plan.vocabularies[*field.vocabulary].file.empty()) continue;  // it has that model's values
    bool has_unknown = false;
    for (std::size_t g = 0; g < plan.fields.size(); ++g) {
      if (plan.fields[g].vocabulary != field.vocabulary) continue;
      for (const ColumnStatistics& found : fields[g])
        has_unknown = has_unknown || found.unknown > 0;
    }
    if (has_unknown) continue;
    names.push_back(field.name);
    least = std::max(least, plan.vocabularies[*field.vocabulary].least);
  }
  if (names.empty()) return "";
  return fmt::format(
      "row 0 of {}, for words that training lacks, is in no training sample and keeps its initial "
      "values; vocabulary(min_count={}) trains it with words that are rarer",
      joined(names), least + 1);
}

}  // namespace tandem
