// Sums of exponentials below their largest number, of rows and of parts of lines.
#pragma once

#include "kernels/cuda/reductions/columns.h"
#include "kernels/cuda/reductions/rows.h"

namespace tandem::cuda::reductions {

/// sum = sum of exp(x - largest) over some numbers x. Without numbers: -infinity and 0.
struct Exponentials {
  float largest, sum;
};

TANDEM_HOST_DEVICE inline float no_number() { return -INFINITY; }

/// exp(x - largest); 0 for x = -infinity whatever the largest one is.
TANDEM_HOST_DEVICE inline float exponential(float x, float largest) {
  return x == no_number() ? 0.0f : std::exp(x - largest);
}

TANDEM_HOST_DEVICE inline float rescaled(float sum, float from, float to) {
  return from == to ? sum : sum * std::exp(from - to);
}

template <int count>
TANDEM_HOST_DEVICE inline void add(Exponentials& to, const Registers<count>& numbers) {
  float largest = to.largest, sum = 0;
  TANDEM_UNROLL
  for (int i = 0; i < count; ++i) largest = MaximumOf{}(largest, numbers.values[i]);
  TANDEM_UNROLL
  for (int i = 0; i < count; ++i) sum += exponential(numbers.values[i], largest);
  to.sum = rescaled(to.sum, to.largest, largest) + sum;
  to.largest = largest;
}

struct JoinExponentials {
  TANDEM_HOST_DEVICE Exponentials operator()(const Exponentials& a, const Exponentials& b) const {
    const float largest = MaximumOf{}(a.largest, b.largest);
    return {largest, rescaled(a.sum, a.largest, largest) + rescaled(b.sum, b.largest, largest)};
  }
};

/// NaN where the largest number is infinite: nothing is finite below it.
TANDEM_HOST_DEVICE inline float log_sum(const Exponentials& e) {
  return e.largest + std::log(e.sum) + (e.largest - e.largest);
}

/// The state of a team's row, in each of its threads: what the thread has loaded of the row's only
/// tile, the row's exponentials, and the thread's part of the row's sum, where that is asked for.
template <int values>
struct RowState {
  Registers<values> tile;
  Exponentials all;
  float total;
};

/// Reads the rows from `first` on, one for each team; rows after the last one count as empty.
/// `totals`: sum up plain numbers as well.
template <int pack, bool whole, int values, class Block, class T, class States>
TANDEM_HOST_DEVICE inline void read_rows(Block& block, const T* x, const Rows& rows,
                                         std::int64_t first, bool totals, States& state) {
  const int team = rows.team;
  const int size = team * values;
  const bool fits = rows.length <= size;
  typename Block::template Private<float> part;
  block.each([&](int thread) {
    const std::int64_t row = first + thread / team;
    RowState<values>& s = state(thread);
    s.all = {no_number(), 0};
    s.total = 0;
    for (std::int64_t start = 0; start < rows.length && row < rows.count; start += size) {
      const int left = rows.left(start, size);
      load_tile<pack>(x + row * rows.length + start, left, thread % team, team, no_number(),
                      s.tile);
      if (fits) {
        TANDEM_UNROLL
        for (int i = 0; i < values; ++i)
          s.all.largest = MaximumOf{}(s.all.largest, s.tile.values[i]);
      } else {
        add(s.all, s.tile);
      }
      if (!totals) continue;
      float total = 0;
      TANDEM_UNROLL
      for (int i = 0; i < values; ++i) {
        if (column_of<pack>(i, thread % team, team) < left) total += s.tile.values[i];
      }
      s.total += total;
    }
    part(thread) = s.all.largest;
  });
  const auto largest = combined<whole>(block, part, team, MaximumOf{});
  block.each([&](int thread) {
    RowState<values>& s = state(thread);
    float sum = 0;
    if (fits) {
      TANDEM_UNROLL
      for (int i = 0; i < values; ++i) sum += exponential(s.tile.values[i], largest(thread));
    } else {
      sum = rescaled(s.all.sum, s.all.largest, largest(thread));
    }
    part(thread) = sum;
  });
  const auto sum = combined<whole>(block, part, team, SumOf{});
  block.each([&](int thread) { state(thread).all = {largest(thread), sum(thread)}; });
}

/// A thread's part of a line, whose elements lie `inner` apart: four at a time, every `parts`-th
/// four.
template <class T>
TANDEM_HOST_DEVICE inline Exponentials read_line(const T* x, const Lines& lines, int part,
                                                 int parts, bool totals, float& total) {
  Exponentials all{no_number(), 0};
  for (std::int64_t start = 4 * part; start < lines.length; start += 4 * parts) {
    Registers<4> numbers;
    TANDEM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const bool there = start + i < lines.length;
      numbers.values[i] = there ? widened(x[(start + i) * lines.inner]) : no_number();
      if (totals && there) total += numbers.values[i];
    }
    add(all, numbers);
  }
  return all;
}

}  // namespace tandem::cuda::reductions
