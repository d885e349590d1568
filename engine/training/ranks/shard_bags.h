// Sums of looked-up rows (EmbeddingBag) of a table that ranks share by rows, made where rows are.
#pragma once

#include <map>
#include <utility>

#include "engine/graph/rewrite.h"
#include "engine/training/rank_sums.h"

namespace tandem {

/// Whether the ranks exchange less of a lookup where each sums what it has of every bag, and sends
/// sums in place of rows: the bags of all ranks, there and back, are at most half as many as a
/// rank's ids, and as the `rows` of the whole table. The same on all ranks.
bool crosses_as_sums(const Graph& graph, NodeId lookup, std::int64_t rows, const RankShares& ranks);

/// Writes such lookups:
///
///   ids -> ShardIds -> AllGather -> OwnRows -> the lookup itself in the own part -> ReduceScatter
///
/// so that a rank gets the sums of its own samples, and the gradients of those of all samples for
/// its rows (AllGather).
class ShardBags {
 public:
  explicit ShardBags(const RankShares& ranks) : ranks_(ranks) {}

  /// The results of an EmbeddingBag of the old graph, whose table had so many rows and now is this
  /// rank's part.
  ValueId sums(GraphRewrite& to, NodeId bag, std::int64_t rows);

 private:
  ValueId own_rows(GraphRewrite& to, ValueId ids, std::int64_t rows);

  const RankShares ranks_;
  std::map<std::pair<std::int32_t, std::int64_t>, ValueId> own_rows_;  // by ids, rows of the table
};

}  // namespace tandem
