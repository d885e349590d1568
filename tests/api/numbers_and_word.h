// A model for tables: a score from two numbers and a word.
#pragma once

#include <string>

#include "tests/api/small_model.h"

namespace tandem::testing {

/// `numbers` [8, 2] and `word` [8], an id below 8, give `score` [8, 1].
inline std::string numbers_and_word_model() {
  return SmallModel()
      .input("numbers", {8, 2})
      .input("word", {8}, 7)
      .weight("w", {2, 1}, 0.5f)
      .weight("table", {8, 4}, 0.5f)
      .weight("v", {4, 1}, 0.5f)
      .node("Gather", "embedding", {"table", "word"}, "rows")
      .node("MatMul", "head", {"rows", "v"}, "of_word")
      .node("MatMul", "fc", {"numbers", "w"}, "of_numbers")
      .node("Add", "sum", {"of_word", "of_numbers"}, "score")
      .output("score", {8, 1})
      .bytes();
}

}  // namespace tandem::testing
