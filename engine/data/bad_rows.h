// The rows of a field whose values are out of range, as one problem.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "engine/data/data_source.h"
#include "engine/data/number_text.h"
#include "engine/formats/count_text.h"
#include "engine/graph/error.h"

namespace tandem {

/// The first row is the example; the others are counted.
class BadRows {
 public:
  /// A value that is out of range, of the row that is taken next.
  void take_value(double value) {
    ++values_;
    least_ = value < least_ ? value : least_;
    greatest_ = value > greatest_ ? value : greatest_;
  }
  /// `problem()` is asked for the first row only: its value, and where it is.
  template <class Problem>
  void take_row(const Problem& problem) {
    if (rows_++ == 0) first_ = problem();
  }
  bool any() const { return rows_ > 0; }
  /// Throws BadValues{data}; after at least one row. `what`: "row".
  [[noreturn]] void refuse(const char* what = "row") {
    Diagnostic d = std::move(first_).value();
    if (rows_ > 1) d.message += " (and " + count_text(rows_ - 1, what) + " more)";
    if (values_ > 1 && least_ < greatest_)
      d.got +=
          "; all that are out of range: " + number_text(least_) + " to " + number_text(greatest_);
    BadValues error(ErrorKind::data, std::move(d));
    error.greatest = greatest_;
    throw error;
  }

 private:
  std::optional<Diagnostic> first_;
  std::int64_t rows_ = 0, values_ = 0;
  double least_ = std::numeric_limits<double>::infinity(), greatest_ = -least_;
};

}  // namespace tandem
