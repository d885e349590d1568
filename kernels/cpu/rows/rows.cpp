// Cuts the work on embedding tables into parts and hands them to the loops for this processor.
#include "kernels/cpu/rows/rows.h"

#include <atomic>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/vector_rows.h"

namespace tandem {
namespace {

const VectorRows& vector_rows(Isa isa) {
  return isa == Isa::avx512 ? vector_rows_avx512
         : isa == Isa::avx2 ? vector_rows_avx2
                            : vector_rows_base;
}

constexpr std::int64_t squares_block = 256;  // groups of one partial sum
// Writing around the caches pays where the output would not stay in them.
constexpr std::int64_t past_cache_bytes = std::int64_t{8} << 20;

std::int64_t begin_of(const RowGradients& g, std::int64_t group) {
  return g.offsets == nullptr ? group : g.offsets[group];
}

std::int64_t positions_of(const RowGradients& g) { return begin_of(g, g.groups) - begin_of(g, 0); }

std::int64_t row_bytes(const RowGradients& g) { return g.columns * (g.bfloat16 ? 2 : 4); }

// The first group of a part, so that parts have about equal positions + 3 x groups: reading a
// gradient row costs about a third of visiting a table's row with its states.
std::int64_t first_group(const RowGradients& g, int part, int parts) {
  const auto cost = [&](std::int64_t group) { return begin_of(g, group) + 3 * group; };
  const std::int64_t all = cost(g.groups) - cost(0);
  const std::int64_t goal = cost(0) + all / parts * part + all % parts * part / parts;
  std::int64_t low = 0, high = g.groups;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (cost(middle) < goal)
      low = middle + 1;
    else
      high = middle;
  }
  return part == parts ? g.groups : low;
}

/// f(first, last, buffers) for each part of the groups.
template <class F>
void parallel_groups(const RowGradients& g, int threads, std::int64_t bytes, void* scratch,
                     std::int64_t unit, F f) {
  if (g.groups == 0 || g.columns == 0) return;
  const int parts = parts_for(threads, bytes, grain_bytes);
  parallel_parts(parts, [&](int part) {
    const auto cut = [&](int i) {
      const std::int64_t group = first_group(g, i, parts);
      return i == parts ? g.groups : group / unit * unit;
    };
    const std::int64_t first = cut(part), last = cut(part + 1);
    if (first < last)
      f(first, last, static_cast<float*>(scratch) + part * row_buffers * row_pitch(g.columns));
  });
}

/// Whether f(begin, end) is true for all ranges.
template <class F>
bool all_ranges(int threads, std::int64_t count, std::int64_t bytes, F f) {
  std::atomic<bool> all = true;
  parallel_ranges(threads, count, bytes, [&](std::int64_t begin, std::int64_t end) {
    if (!f(begin, end)) all.store(false, std::memory_order_relaxed);
  });
  return all;
}

}  // namespace

bool gather_rows(const RowLookup& given, Isa isa, int threads) noexcept {
  RowLookup lookup = given;
  if (lookup.bfloat16 && !lookup.widen && lookup.columns % 2 == 0 && lookup.stride % 2 == 0) {
    // Two bfloat16 are copied like a float32.
    lookup.bfloat16 = false;
    lookup.columns /= 2;
    lookup.stride /= 2;
  }
  const std::int64_t row = lookup.columns * (lookup.bfloat16 ? 2 : 4);
  const std::int64_t row_of_y = lookup.columns * (lookup.bfloat16 && !lookup.widen ? 2 : 4);
  const VectorRows& loops = vector_rows(isa);
  const bool past_cache = lookup.ids.count * row_of_y >= past_cache_bytes;
  return all_ranges(threads, lookup.ids.count, lookup.ids.count * (row + row_of_y + 32),
                    [&](std::int64_t begin, std::int64_t end) {
                      return loops.gather(lookup, begin, end, past_cache);
                    });
}

void join_rows(const std::uint16_t* tops, const std::int16_t* tails, float* x, std::int64_t n,
               Isa isa) noexcept {
  vector_rows(isa).join(tops, tails, x, n);
}

void split_rows(const float* x, std::uint16_t* tops, std::int16_t* tails, std::int64_t n,
                Isa isa) noexcept {
  vector_rows(isa).split(x, tops, tails, n);
}

bool sum_bags(const RowBags& bags, Isa isa, int threads) noexcept {
  const std::int64_t ids = bags.rows.ids.count, count = ids / bags.length;
  const VectorRows& loops = vector_rows(isa);
  const std::int64_t row = bags.rows.columns * (bags.rows.bfloat16 ? 2 : 4);
  return all_ranges(
      threads, count, ids * (row + 16) + count * 32,
      [&](std::int64_t begin, std::int64_t end) { return loops.bags(bags, begin, end); });
}

std::size_t row_scratch_bytes(std::int64_t groups, std::int64_t columns, int threads) {
  const std::int64_t blocks = (groups + squares_block - 1) / squares_block;
  return static_cast<std::size_t>(std::max(threads, 1) * row_buffers * row_pitch(columns) * 4 +
                                  blocks * 8);
}

void segment_sum(const RowGradients& g, float* sums, void* scratch, Isa isa, int threads) noexcept {
  const VectorRows& loops = vector_rows(isa);
  const std::int64_t bytes = positions_of(g) * row_bytes(g) + g.groups * g.columns * 4;
  parallel_groups(g, threads, bytes, scratch, 1,
                  [&](std::int64_t first, std::int64_t last, float* buffers) {
                    loops.sum(g, first, last, sums, buffers);
                  });
}

double rows_sum_of_squares(const RowGradients& g, void* scratch, Isa isa, int threads) noexcept {
  const VectorRows& loops = vector_rows(isa);
  auto* partial = reinterpret_cast<double*>(
      static_cast<float*>(scratch) + std::max(threads, 1) * row_buffers * row_pitch(g.columns));
  parallel_groups(g, threads, positions_of(g) * row_bytes(g), scratch, squares_block,
                  [&](std::int64_t first, std::int64_t last, float* buffers) {
                    for (std::int64_t i = first; i < last; i += squares_block) {
                      partial[i / squares_block] =
                          loops.squares(g, i, std::min(i + squares_block, last), buffers);
                    }
                  });
  double total = 0;
  const std::int64_t blocks = g.columns == 0 ? 0 : (g.groups + squares_block - 1) / squares_block;
  for (std::int64_t i = 0; i < blocks; ++i) total += partial[i];
  return total;
}

void update_rows(const RowStep& step, const RowTable& table, const RowGradients& g, void* scratch,
                 Isa isa, int threads) noexcept {
  const VectorRows& loops = vector_rows(isa);
  const RuleLoops& steps = rule_loops(step.rule, isa);
  const auto bytes = static_cast<std::int64_t>(update_rows_bytes(step.layout, g, positions_of(g)));
  parallel_groups(g, threads, bytes, scratch, 1,
                  [&](std::int64_t first, std::int64_t last, float* buffers) {
                    loops.update(step, steps, table, g, first, last, buffers);
                  });
}

void update_elements(const RowStep& step, float* weights, float* const* states,
                     const float* gradients, std::int64_t n, Isa isa) noexcept {
  rule_loops(step.rule, isa).whole(step.factors, weights, states, gradients, n);
}

double update_rows_bytes(const RowLayout& layout, const RowGradients& g, std::int64_t positions) {
  std::int64_t changed = g.columns;  // elements of a row's weights and states
  for (int k = 0; k < most_states; ++k) {
    if (layout.has(k)) changed += layout.state_columns(k, g.columns);
  }
  const std::int64_t index = (g.offsets == nullptr ? 0 : 4) + 8;
  return static_cast<double>(positions * (row_bytes(g) + (g.order == nullptr ? 0 : 4))) +
         static_cast<double>(g.groups * (changed * 8 + index));
}

}  // namespace tandem
