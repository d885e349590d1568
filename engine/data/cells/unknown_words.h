// Words that the vocabularies of the training data lack: messages where there are many.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/row_encoder.h"
#include "engine/graph/structures/function_ref.h"

namespace tandem {

/// Up to this share of a column's values, unknown ones cause no message.
inline constexpr double most_unknown = 0.03;

/// Statistics of the values that a field takes from one column.
struct UnknownWords {
  std::string field, column;
  std::int64_t values = 0, unknown = 0;
  struct Example {
    std::string word, nearest;  // nearest: most similar known word; "" where none is near
  };
  std::vector<Example> examples;
  bool is_untrained = false;  // no training sample has the row that they share
  bool are_tokens = true;  // tokens or characters of a given vocabulary; false: words of a column

  double share() const {
    return values > 0 ? static_cast<double>(unknown) / static_cast<double>(values) : 0;
  }
};

/// The known word that is most like an unknown one: one that differs in spaces, then in the case of
/// letters, then in how a number is written ("1.0" and "1"), then in few letters; "" where there is
/// none. `known(i)` is asked for i below `count`.
std::string nearest_word(std::string_view word, std::int64_t count,
                         FunctionRef<std::string_view(std::int64_t)> known);

/// Columns with unknown words, by the statistics of their fields.
std::vector<UnknownWords> unknown_words(const TablePlan& plan,
                                        const std::vector<std::vector<ColumnStatistics>>& fields,
                                        const std::vector<Vocabulary>& vocabularies);

/// A sentence for each column in which more than 3 of 100 values are unknown.
std::vector<std::string> unknown_warnings(const std::vector<UnknownWords>& all);

/// Like unknown_warnings, but only for tokens, which need no vocabulary of the training data.
std::vector<std::string> token_warnings(const TablePlan& plan,
                                        const std::vector<std::vector<ColumnStatistics>>& fields);

/// A sentence for each column of the training data with words that its vocabulary lacks, where that
/// is taken from a file.
std::vector<std::string> taken_warnings(const TablePlan& plan,
                                        const std::vector<std::vector<ColumnStatistics>>& fields);

/// The vocabularies whose row for unknown words no training sample has, by the statistics of the
/// training data: a note about them, or "".
std::string untrained_note(const TablePlan& plan,
                           const std::vector<std::vector<ColumnStatistics>>& fields);

}  // namespace tandem
