#include "api/init/text_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "api/init/data/data_look.h"
#include "api/init/roles.h"
#include "engine/config/keys/config_value.h"
#include "engine/config/rows_line.h"
#include "engine/data/cells/spelling.h"
#include "engine/data/functions/call.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

/// The functions that number all texts of a column from 0; empty where a list cannot hold them. An
/// empty field, which no list can hold, is first replaced by a word.
std::vector<std::string> numbering(const ArrayFacts& array) {
  std::vector<std::string> words = words_of(array), functions;
  const auto empty = std::find(words.begin(), words.end(), "");
  if (empty != words.end()) {
    std::string word = "none";
    while (std::find(words.begin(), words.end(), word) != words.end()) word += "_";
    *empty = word;
    functions.push_back(call_text("missing", {word}));
  }
  const std::string classes = classes_function(words);
  if (classes.empty()) return {};
  functions.push_back(classes);
  return functions;
}

/// Whether the words are the classes of a model that has its loss inside.
bool are_labels(const InputFacts& input, const ArrayFacts& array) {
  return array.is_label && names_label(input.name);
}

/// The expected percentage of `texts` that a hash maps to the same one of `rows` rows as another
/// text.
double percent_together(std::int64_t texts, std::int64_t rows) {
  const auto others = static_cast<double>(std::max<std::int64_t>(texts - 1, 0));
  return 100 * (1 - std::pow(1 - 1 / static_cast<double>(rows), others));
}

/// For columns that each look up rows of a table of their own: which texts have a row there. Where
/// a table has exactly as many rows as there are texts, it needs one more, for what training lacks.
void add_column_ids(const InputFacts& input, const ArrayFacts& array, Functions& to) {
  std::string told, too_small;
  std::map<std::string, std::int64_t> rules;
  for (std::size_t c = 0; c < input.element_rows.size(); ++c) {
    const std::int64_t rows = input.element_rows[c];
    const std::int64_t texts = array.texts_by_part[c] * (array.may_have_more_texts ? 2 : 1);
    const std::string& table = input.element_tables[c];
    told += fmt::format("{}{} of \"{}\" in {}", told.empty() ? "" : ", ", array.texts_by_part[c],
                        array.columns[c], rows);
    if (texts < rows) continue;
    if (texts == rows && !array.may_have_more_texts && !table.empty()) {
      to.rows[table] = texts + 1;
      continue;
    }
    too_small += fmt::format("{}{}{} texts of \"{}\" and {} rows{}", too_small.empty() ? "" : "; ",
                             array.may_have_more_texts ? "at least " : "", array.texts_by_part[c],
                             array.columns[c], rows, table.empty() ? "" : " of \"" + table + "\"");
    if (!table.empty()) rules[table] = texts + 1;
  }
  if (!too_small.empty()) {
    to.why_not = too_small +
                 ": each text needs its own row, and one row is for texts that training lacks" +
                 (rules.empty() ? "" : "; " + rows_line(rules) + " gives a table more");
    return;
  }
  to.as.emplace_back("vocabulary(by='table')");
  to.why = fmt::format(
      "each column has a table of its own, and each of its texts a row there: {} rows; row 0 is "
      "for what training lacks",
      told);
}

/// How often a text has to occur to get a row of its own, so that the rarer ones share row 0; 0
/// where fewer than half of the texts would have one.
std::int64_t least_count(const ArrayFacts& array, std::int64_t rows) {
  std::vector<std::int64_t> counts = array.word_counts;
  std::sort(counts.rbegin(), counts.rend());
  const auto kept = static_cast<std::size_t>(rows - 1);  // row 0 is for all others
  if (rows < 2 || counts.size() <= kept) return 0;
  const std::int64_t least = counts[kept] + 1;
  const auto of_own = std::count_if(counts.begin(), counts.end(),
                                    [&](std::int64_t count) { return count >= least; });
  return 2 * of_own >= std::ssize(counts) ? least : 0;
}

/// For as many texts as the table has rows, so that none is left for what training lacks.
void add_ids_of_all_rows(const InputFacts& input, const ArrayFacts& array, Functions& to) {
  const std::int64_t rows = input.table_rows;
  const std::string as_many =
      fmt::format("{} different texts, as many as the table has rows", array.texts);
  const std::int64_t least = least_count(array, rows);
  if (!input.tables.empty()) {
    to.as.emplace_back("vocabulary");
    for (const auto& [table, own] : input.tables) {
      if (own <= rows) to.rows[table] = rows + 1;
    }
    to.why = as_many +
             ": parameters.shape gives it one more, row 0 for texts that training lacks; without "
             "it a new text would be an error. To keep rows that the file has learned, number "
             "their texts in the order of the rows by classes('…', '…')";
  } else if (least > 0) {
    to.as.push_back(fmt::format("vocabulary(min_count={})", least));
    to.why = fmt::format(
        "{}, and it cannot have more: texts that occur fewer than {} times share row 0 with those "
        "that training lacks",
        as_many, least);
  } else {
    to.as.push_back(fmt::format("hash({})", rows));
    to.why = fmt::format(
        "{}, and it cannot have more: by a hash each text has a row, also one that training lacks; "
        "about {:.0f} % of them have a row together with others",
        as_many, percent_together(array.texts, rows));
  }
}

void add_text_ids(const InputFacts& input, const ArrayFacts& array, Functions& to) {
  const std::int64_t rows = input.table_rows;
  // Rows that were not read may hold as many further texts.
  const std::int64_t texts = array.texts * (array.may_have_more_texts ? 2 : 1);
  if (texts > 0 && texts < rows) {
    to.as.emplace_back("vocabulary");
    to.why = fmt::format(
        "{} different texts have a row each of the table's {}; row 0 is for what training lacks",
        array.texts, rows);
    return;
  }
  const bool are_all = texts == rows && !array.may_have_more_texts;
  if (are_all && are_labels(input, array)) {
    to.as = numbering(array);
    to.why = fmt::format("{} classes, as many as the table has rows", rows);
    if (!to.as.empty()) return;
  }
  if (are_all) return add_ids_of_all_rows(input, array, to);
  std::map<std::string, std::int64_t> wanted;
  for (const auto& [table, own] : input.tables) wanted[table] = texts + 1;
  to.as.push_back(fmt::format("hash({})", rows));
  to.why = fmt::format(
      "{}{} different texts share the table's {} rows by a hash, where about {:.0f} % of them have "
      "a row together with others; with \"vocabulary\" and {} rows each has its own{}",
      array.may_have_more_texts ? "at least " : "", array.texts, rows,
      percent_together(array.texts, rows), texts + 1,
      wanted.empty() ? "" : ": " + rows_line(wanted));
}

/// An element for each text. A text that training lacks has none of them.
void add_one_hot(const InputFacts& input, const ArrayFacts& array, Functions& to) {
  if (are_labels(input, array)) {
    to.as = numbering(array);
    to.as.push_back(fmt::format("one_hot({})", array.texts));
    to.why = fmt::format("each of the {} different texts has a place", array.texts);
    return;
  }
  to.as = {"vocabulary", fmt::format("one_hot({}, first=1)", array.texts)};
  to.why = fmt::format(
      "each of the {} different texts has a place, by falling counts; a text that training lacks "
      "has none and is 0 everywhere",
      array.texts);
}

}  // namespace

std::string lower_classes(const ArrayFacts& array) {
  std::set<std::string> words;
  for (const std::string& word : words_of(array)) words.insert(lower_text(word));
  words.erase("");
  return classes_function({words.begin(), words.end()});
}

std::string add_spelling(const ArrayFacts& array, std::vector<std::string>& as) {
  std::string why;
  if (!array.alike_but_for_blanks.empty()) {
    as.insert(as.begin(), "trim");
    why += "; " + array.alike_but_for_blanks + ": trim makes them one";
  }
  if (!array.alike_but_for_case.empty()) {
    std::vector<std::string> lower = as;
    for (std::string& function : lower) {
      if (function.starts_with("classes(")) function = lower_classes(array);
    }
    lower.insert(lower.begin() + (array.alike_but_for_blanks.empty() ? 0 : 1), "lower");
    why += fmt::format("; {}: as = [ {} ] makes them one", array.alike_but_for_case,
                       joined(lower, ", ", toml_string));
  }
  return why;
}

bool is_one_hot(const InputFacts& input, const ArrayFacts& array) {
  return array.is_text && input.sample.shape.size() == 1 && input.sample.shape[0] == array.texts &&
         words_of(array).size() >= 2 && (!are_labels(input, array) || !numbering(array).empty());
}

Functions functions_of_words(const InputFacts& input, const ArrayFacts& array) {
  Functions result;
  if (is_float(input.sample.dtype))
    add_one_hot(input, array, result);
  else if (!input.element_rows.empty() && array.stacked &&
           array.texts_by_part.size() == input.element_rows.size())
    add_column_ids(input, array, result);
  else
    add_text_ids(input, array, result);
  result.as.insert(result.as.begin(), array.made_by.begin(), array.made_by.end());
  if (result.why_not.empty()) result.why += add_spelling(array, result.as);
  return result;
}

}  // namespace tandem::api
