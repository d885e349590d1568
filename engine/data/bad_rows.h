// The rows of a field whose values are out of range, as one problem.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "engine/graph/error.h"

namespace tandem {

/// The first row is the example; the others are counted.
class BadRows {
 public:
  /// A value that is out of range, of the row that is taken next.
  void take_value(double value);
  /// `problem()` is asked for the first row only: its value, and where it is.
  template <class Problem>
  void take_row(const Problem& problem) {
    if (rows_++ == 0) first_ = problem();
  }
  bool any() const { return rows_ > 0; }
  /// Throws BadValues{data}. `what`: "row".
  [[noreturn]] void refuse(const char* what = "row");

 private:
  std::optional<Diagnostic> first_;
  std::int64_t rows_ = 0, values_ = 0;
  double least_ = std::numeric_limits<double>::infinity(), greatest_ = -least_;
};

}  // namespace tandem
