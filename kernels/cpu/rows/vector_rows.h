// The inner loops of embedding tables, compiled once for each instruction set: each works on a
// range of rows on one thread.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/rows/rule_loops.h"

namespace tandem {

struct VectorRows {
  /// y[i] for begin <= i < end; `past_cache`: y is written around the caches. Returns whether all
  /// these ids are inside the table.
  bool (*gather)(const RowLookup& lookup, std::int64_t begin, std::int64_t end, bool past_cache);
  // Groups first..last; `buffers` holds row_buffers rows of row_pitch(columns) floats.
  void (*sum)(const RowGradients& gradients, std::int64_t first, std::int64_t last, float* sums,
              float* buffers);
  double (*squares)(const RowGradients& gradients, std::int64_t first, std::int64_t last,
                    float* buffers);
  void (*update)(const RowStep& step, const RuleLoops& loops, const RowTable& table,
                 const RowGradients& gradients, std::int64_t first, std::int64_t last,
                 float* buffers);
  /// y[b] for begin <= b < end. Returns whether all their ids are inside the table.
  bool (*bags)(const RowBags& bags, std::int64_t begin, std::int64_t end);
  // n floats from and to their halves.
  void (*join)(const std::uint16_t* top, const std::int16_t* tail, float* x, std::int64_t n);
  void (*split)(const float* x, std::uint16_t* top, std::int16_t* tail, std::int64_t n);
};

extern const VectorRows vector_rows_base;
extern const VectorRows vector_rows_avx2;
extern const VectorRows vector_rows_avx512;

/// Three for sums of sums, two for rows times their weights.
constexpr std::int64_t row_buffers = 5;
/// A row and a cache line between, so that equal columns of the buffers do not collide.
constexpr std::int64_t row_pitch(std::int64_t columns) { return (columns + 15) / 16 * 16 + 16; }

}  // namespace tandem
