#include "api/init/data/column_texts.h"

#include <algorithm>

namespace tandem::api {

void ColumnTexts::add(std::size_t column, std::string_view text) {
  constexpr std::int64_t most_values = 4'000'000;  // about 400 MB at most, of 64 MiB of text
  const auto number = static_cast<std::uint32_t>(column);
  if (values_.size() < most_values)
    values_.find_or_add(number, text);
  else
    more_ = more_ || values_.find(number, text) < 0;
}

void ColumnTexts::tell(std::vector<ArrayFacts>& columns, bool all) const {
  for (std::int64_t i = 0; i < values_.size(); ++i) {
    ArrayFacts& column = columns.at(values_.column(i));
    if (static_cast<std::size_t>(++column.texts) <= ArrayFacts::most_words)
      column.words.emplace_back(values_.value(i));
  }
  for (ArrayFacts& column : columns) {
    if (static_cast<std::size_t>(column.texts) > ArrayFacts::most_words) column.words.clear();
    std::sort(column.words.begin(), column.words.end());
    column.may_have_more_texts = more_ || !all;
  }
}

}  // namespace tandem::api
