#include "api/init/data/column_texts.h"

#include <algorithm>

namespace tandem::api {

void ColumnTexts::add(std::size_t column, std::string_view text) {
  constexpr std::int64_t most_values = 4'000'000;  // about 400 MB at most, from 64 MiB of text
  const auto number = static_cast<std::uint32_t>(column);
  if (values_.size() < most_values)
    values_.count(values_.find_or_add(number, text));
  else
    more_ = more_ || values_.find(number, text) < 0;
}

void ColumnTexts::tell(std::vector<ArrayFacts>& columns, bool all) const {
  std::vector<std::vector<std::pair<std::string, std::int64_t>>> counts(columns.size());
  for (std::int64_t i = 0; i < values_.size(); ++i) {
    ArrayFacts& column = columns.at(values_.column(i));
    if (static_cast<std::size_t>(++column.texts) <= ArrayFacts::most_words)
      counts[values_.column(i)].emplace_back(values_.value(i), values_.times(i));
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    ArrayFacts& column = columns[c];
    column.may_have_more_texts = more_ || !all;
    if (static_cast<std::size_t>(column.texts) > ArrayFacts::most_words) continue;
    std::sort(counts[c].begin(), counts[c].end());
    for (auto& [word, times] : counts[c]) {
      column.words.push_back(std::move(word));
      column.word_counts.push_back(times);
    }
  }
}

}  // namespace tandem::api
