// Row-sparse gradients: a lookup's gradient stays (ids, dy), and what reads it gets the ids grouped
// by row (UniqueIndices) together with dy.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/operators/update_kind.h"

namespace tandem {

/// The id that names no row, the least value of its integer type. It is in range for every table:
/// Gather and EmbeddingBag read zeros for it, whatever the table holds (the mean of a bag still
/// divides by all of its ids), GatherGrad and EmbeddingBagGrad skip it, UniqueIndices leaves its
/// position out of all groups, MarkRows marks nothing. Arithmetic on ids and casts to another type
/// do not keep it.
template <class Id>
inline constexpr Id absent_id = std::numeric_limits<Id>::min();
/// The absent id of int32 or int64 ids, in 64 bits.
constexpr std::int64_t absent_id_of(DType ids) {
  return ids == DType::int32 ? std::int64_t{absent_id<std::int32_t>} : absent_id<std::int64_t>;
}

/// Outputs of UniqueIndices(ids...) over a table of `rows` rows, with N ids in all, P of them not
/// absent, and the capacity C = min(N, rows). Beyond the first `count` rows `unique` holds -1 and
/// `offsets` P; beyond the first P positions `order` holds -1, and nothing reads it.
struct UniqueOutputs {
  static constexpr std::size_t unique = 0;  // int64[C]: the rows that occur, ascending
  static constexpr std::size_t order = 1;   // int32[N]: positions of ids, grouped by row, ascending
  static constexpr std::size_t offsets = 2;  // int32[C + 1]: where each row's positions begin
  static constexpr std::size_t count = 3;    // int32 scalar: rows that occur
  static constexpr std::size_t inverse = 4;  // int32[N]: per id its place in `unique`, or absent_id
};

/// Inputs of RowsUpdate: (master, states..., tail?, unique, order, offsets, count, lr, step, scale,
/// skip, dy..., weights...); its outputs: (master, states..., tail?). Positions of `order` run
/// through all lookups, one after the other. With the attribute `split` the master is the bfloat16
/// half of a split float32 (engine/graph/split_float.h), and `tail` the other.
struct RowsOperands {
  explicit RowsOperands(const Node& node)
      : split(node.attributes.flag("split")), states(update_kind(node).states.size() + split) {}

  bool split;
  std::size_t states;  // how many, the tail among them; they begin at input 1
  std::size_t tail() const { return states; }  // the last of them, where split
  std::size_t unique() const { return 1 + states; }
  std::size_t order() const { return 2 + states; }
  std::size_t offsets() const { return 3 + states; }
  std::size_t count() const { return 4 + states; }
  std::size_t scalars() const { return 5 + states; }
  std::size_t gradients() const { return 9 + states; }
};

/// One lookup of those whose gradients are a node's last inputs: a dy for each, then weights for
/// those that have some. Position p of it has the gradient weights[p] * row p / bag of dy. A sum of
/// `bag` looked-up rows hands the same row to all of them.
struct LookupGradient {
  std::size_t dy = 0;       // input
  std::int64_t bag = 1;     // positions in turn that share a row of dy
  std::size_t weights = 0;  // input, one element for each position; 0: there are none
};

/// The attributes that describe lookups, `bags` and `weighted`: an entry for each lookup, or empty
/// where every position has a row of its own and there are no weights.
std::vector<AttributeSpec> lookup_attributes();
/// The gradients from input `first` on.
std::vector<LookupGradient> lookup_gradients(const Node& node, std::size_t first);
/// Throws where the inputs from `first` on are no gradients of that many ids.
void require_lookup_gradients(const NodeView& view, std::size_t first, std::int64_t ids,
                              std::int64_t columns);

}  // namespace tandem
