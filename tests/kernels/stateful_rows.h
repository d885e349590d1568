// An optimizer's state as an update of rows gets it, with a trap after its end.
#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/rows/rows.h"

namespace tandem::testing {

/// As many numbers as the layout says, then NaNs up to the length of a whole table (and more): if
/// they are read, weights become NaN, and writes to them are detected.
class RowState {
 public:
  /// State k of a table.
  RowState(const RowLayout& layout, int k, std::int64_t rows, std::int64_t columns, float start)
      : numbers_(static_cast<std::size_t>(rows * columns) + 16, trap) {
    if (!layout.has(k)) return;
    size_ = static_cast<std::size_t>(rows * layout.state_columns(k, columns));
    for (std::size_t i = 0; i < size_; ++i) numbers_[i] = start;
  }

  /// Null if the kind has no such state.
  float* data() { return size_ == 0 ? nullptr : numbers_.data(); }
  std::size_t size() const { return size_; }
  const float& operator[](std::size_t i) const { return numbers_[i]; }
  /// Whether the trap is unchanged.
  bool ends_where_it_should() const {
    for (std::size_t i = size_; i < numbers_.size(); ++i) {
      if (std::memcmp(&numbers_[i], &trap, sizeof trap) != 0) return false;
    }
    return true;
  }
  /// Compares bits.
  bool operator==(const RowState& other) const {
    return size_ == other.size_ && numbers_.size() == other.numbers_.size() &&
           std::memcmp(numbers_.data(), other.numbers_.data(), numbers_.size() * sizeof(float)) ==
               0;
  }

 private:
  static constexpr float trap = std::numeric_limits<float>::quiet_NaN();
  std::size_t size_ = 0;
  std::vector<float> numbers_;
};

/// Start values of states in tests: the mean of squares is larger than the square of the mean.
constexpr float start_of_state(int k) { return k == 0 ? 0.1f : k == 1 ? 0.05f : 0.02f; }

/// All states of a table.
inline std::vector<RowState> row_states(const RowLayout& layout, std::int64_t rows,
                                        std::int64_t columns) {
  std::vector<RowState> states;
  for (int k = 0; k < most_states; ++k)
    states.emplace_back(layout, k, rows, columns, start_of_state(k));
  return states;
}

}  // namespace tandem::testing
