// Embedding tables on the host: lookups, and sums and optimizer updates of the rows that a batch
// touches. Plain functions on plain pointers: nothing allocates or throws, scratch memory is the
// caller's (64-byte aligned), and results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/operators/tables/rows.h"
#include "engine/optimizers/states.h"
#include "kernels/cpu/isa.h"

namespace tandem {

/// One array of lookup indices. A negative one counts from the table's end; absent_id of its type
/// names no row; what is still outside becomes the nearest row.
struct IdArray {
  const void* data = nullptr;
  std::int64_t count = 0;
  bool wide = true;  // int64, else int32
};

/// The positions 0..N of some ids (one array after the other), grouped by table row; those of
/// absent ids are in no group.
struct RowGroups {
  void* rows = nullptr;             // [count] touched rows, ascending
  bool wide_rows = true;            // int64, else int32
  std::int32_t* offsets = nullptr;  // [count + 1]: group i is order[offsets[i] .. offsets[i + 1]]
  std::int32_t* order = nullptr;    // [N] positions, ascending within a group; then -1
  std::int32_t* inverse = nullptr;  // [N] the group of each position, or absent_id; may be null
};

/// Fills `groups`, whose rows hold min(N, table_rows) entries, and returns the number of groups.
/// N < 2^31; N x (table_rows + 1), both rounded up to powers of two, must stay below 2^64.
std::int64_t unique_rows(const IdArray* ids, int arrays, std::int64_t table_rows,
                         const RowGroups& groups, void* scratch, int threads) noexcept;
std::size_t unique_rows_scratch_bytes(std::int64_t ids, std::int64_t table_rows, int threads);

/// y[i] = table[ids[i]], zeros where it is absent, for rows of `columns` elements; rows of y lie
/// `stride` elements apart. Also packs the rows of RowGroups. Returns whether all ids are inside
/// the table, as absent ones are.
struct RowLookup {
  const void* table = nullptr;
  std::int64_t table_rows = 0, columns = 0;
  IdArray ids;
  void* y = nullptr;
  std::int64_t stride = 0;
  bool bfloat16 = false;  // the table; else float32
  bool widen = false;     // y is float32 all the same; else it has the table's type
};
bool gather_rows(const RowLookup& lookup, Isa isa, int threads) noexcept;

/// y[b] = the sum of weights[i] * table[ids[i]] over i from b * length to (b + 1) * length; `rows`
/// holds all ids. A row of weight 0 is not read. weights: float32 for each id, or null. y is
/// float32. Returns what gather_rows does.
struct RowBags {
  RowLookup rows;
  std::int64_t length = 1;
  const float* weights = nullptr;
};
bool sum_bags(const RowBags& bags, Isa isa, int threads) noexcept;

/// Gradients of positions first .. first + rows: position first + p has weights[p] times the row
/// p * share (rounded down) of data. Rows lie `stride` elements apart.
struct GradientArray {
  const void* data = nullptr;
  std::int64_t rows = 0, stride = 0;
  double share = 1;  // 1 / how many positions in turn have the same row
  const float* weights = nullptr;
};

/// Gradients of a table's lookups, as groups of positions to be summed.
struct RowGradients {
  const GradientArray* arrays = nullptr;  // positions run through them in this order
  int count = 0;                          // number of arrays
  std::int64_t columns = 0;
  bool bfloat16 = false;                  // else float32
  const std::int32_t* offsets = nullptr;  // as in RowGroups; null where row i has only position i
  const std::int32_t* order = nullptr;    // as in RowGroups; null where positions are in order
  std::int64_t groups = 0;
};

/// sums[i] = sum of group i, float32 [groups, columns].
void segment_sum(const RowGradients& gradients, float* sums, void* scratch, Isa isa,
                 int threads) noexcept;
/// The sum of squares of all elements of all groups' sums.
double rows_sum_of_squares(const RowGradients& gradients, void* scratch, Isa isa,
                           int threads) noexcept;
/// Bytes of the scratch of segment_sum, rows_sum_of_squares and update_rows.
std::size_t row_scratch_bytes(std::int64_t groups, std::int64_t columns, int threads);

/// What the update of a row needs in addition to the row and its gradient.
struct RowLayout {
  unsigned kept = 0;       // the states, as bits
  unsigned by_row = 0;     // states with one element for a row; the others have as many as the row
  bool whole_row = false;  // what an element becomes depends on the others of its row

  constexpr bool has(int k) const { return (kept >> k & 1u) != 0; }
  constexpr bool is_by_row(int k) const { return (by_row >> k & 1u) != 0; }
  /// Several rows may be updated like one that is as long as all of them.
  constexpr bool elementwise() const { return !whole_row && by_row == 0; }
  /// Elements of state k for a row of `columns` elements.
  constexpr std::int64_t state_columns(int k, std::int64_t columns) const {
    return is_by_row(k) ? 1 : columns;
  }
};

/// A rule of an optimizer and the factors of this step; row_rule.h makes them.
struct RowStep {
  int rule = 0;  // its place in the list of engine/optimizers/rules.h
  RowLayout layout;
  alignas(16) unsigned char factors[most_step_bytes];
};

/// A table [table_rows, columns] and the states of its optimizer, [table_rows,
/// RowLayout::state_columns], in their order; those that the rule does not keep are not read.
/// Instead of `weights`, `tops` and `tails` may hold a split table.
struct RowTable {
  float* weights = nullptr;
  float* states[most_states] = {};
  const void* rows = nullptr;  // [groups] distinct rows to update
  bool wide_rows = true;
  std::uint16_t* tops = nullptr;
  std::int16_t* tails = nullptr;
};

/// Sums each group and updates its row of weights and states with it, in one pass.
void update_rows(const RowStep& step, const RowTable& table, const RowGradients& gradients,
                 void* scratch, Isa isa, int threads) noexcept;

/// n elements of a dense parameter: the step of an element-wise kind, in place. `states`:
/// most_states pointers.
void update_elements(const RowStep& step, float* weights, float* const* states,
                     const float* gradients, std::int64_t n, Isa isa) noexcept;

/// n elements of a split table as float32, and back (engine/graph/split_float.h).
void join_rows(const std::uint16_t* tops, const std::int16_t* tails, float* x, std::int64_t n,
               Isa isa) noexcept;
void split_rows(const float* x, std::uint16_t* tops, std::int16_t* tails, std::int64_t n,
                Isa isa) noexcept;

/// The least bytes that an update moves: gradients and their order once, touched rows of weights
/// and states read and written.
double update_rows_bytes(const RowLayout& layout, const RowGradients& gradients,
                         std::int64_t positions);

}  // namespace tandem
