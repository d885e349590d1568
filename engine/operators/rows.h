// Row-sparse gradients: a look-up's gradient stays (ids, dy), and what reads it gets the ids
// grouped by row (UniqueIndices) beside dy.
#pragma once

#include <string>

#include "engine/operators/update_kind.h"

namespace tandem {

/// Outputs of UniqueIndices(ids...) over a table of `rows` rows, with N ids in all and the capacity
/// C = min(N, rows). Beyond the first `count` rows `unique` holds -1 and `offsets` N.
struct UniqueOutputs {
  static constexpr std::size_t unique = 0;  // int64[C]: the rows that occur, ascending
  static constexpr std::size_t order = 1;   // int32[N]: positions of ids, grouped by row, ascending
  static constexpr std::size_t offsets = 2;  // int32[C + 1]: where each row's positions begin
  static constexpr std::size_t count = 3;    // int32 scalar: rows that occur
  static constexpr std::size_t inverse = 4;  // int32[N]: per id its place in `unique`
};

/// Inputs of RowsUpdate: (master, states..., unique, order, offsets, count, lr, step, scale, skip,
/// dy...). Position p of `order` is row p of all dy's, one after the other.
struct RowsOperands {
  explicit RowsOperands(const UpdateKind& kind) : states(kind.states.size()) {}
  explicit RowsOperands(const Node& node) : RowsOperands(update_kind(node)) {}

  std::size_t states;  // how many; they begin at input 1
  std::size_t unique() const { return 1 + states; }
  std::size_t order() const { return 2 + states; }
  std::size_t offsets() const { return 3 + states; }
  std::size_t count() const { return 4 + states; }
  std::size_t scalars() const { return 5 + states; }
  std::size_t gradients() const { return 9 + states; }
};

}  // namespace tandem
