#include "api/init/data/column_texts.h"

#include <algorithm>
#include <map>

#include "engine/data/cells/alike_words.h"

namespace tandem::api {
namespace {

/// Joins words that are the same without blanks around them. Cells of blanks only are empty fields.
void take_blanks_off(std::vector<CountedWord>& words, ArrayFacts& column) {
  std::map<std::string_view, std::int64_t> joined;
  for (const auto& [word, times] : words) {
    const std::string_view plain = without_blanks(word);
    joined[plain] += times;
    if (plain.empty() && !word.empty()) column.missing += times;
  }
  words.clear();
  for (const auto& [word, times] : joined) words.push_back({word, times});
}

}  // namespace

void ColumnTexts::add(std::size_t column, std::string_view text) {
  constexpr std::int64_t most_values = 4'000'000;  // about 400 MB at most, from 64 MiB of text
  const auto number = static_cast<std::uint32_t>(column);
  if (values_.size() < most_values)
    values_.count(values_.find_or_add(number, text));
  else
    more_ = more_ || values_.find(number, text) < 0;
}

void ColumnTexts::tell(std::vector<ArrayFacts>& columns, bool all) const {
  std::vector<std::vector<CountedWord>> found(columns.size());
  for (std::int64_t i = 0; i < values_.size(); ++i)
    found.at(values_.column(i)).push_back({values_.value(i), values_.times(i)});
  for (std::size_t c = 0; c < columns.size(); ++c) {
    ArrayFacts& column = columns[c];
    column.may_have_more_texts = more_ || !all;
    if (!column.is_text) {
      column.texts = std::ssize(found[c]);
    } else {
      if (const auto alike = alike_but_for_blanks(found[c])) {
        column.alike_but_for_blanks = alike_text(*alike, only_in_blanks);
        take_blanks_off(found[c], column);
      }
      column.texts = std::ssize(found[c]);
      if (const auto alike = alike_but_for_case(found[c]))
        column.alike_but_for_case = alike_text(*alike, only_in_case);
    }
    if (static_cast<std::size_t>(column.texts) > ArrayFacts::most_words) continue;
    std::sort(found[c].begin(), found[c].end(),
              [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
    for (const auto& [word, times] : found[c]) {
      column.words.emplace_back(word);
      column.word_counts.push_back(times);
    }
  }
}

}  // namespace tandem::api
