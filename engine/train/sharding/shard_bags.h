// Sums of looked-up rows (EmbeddingBag) of a table that ranks share by rows, made where rows are.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "engine/graph/rewrite.h"
#include "engine/train/graph/rank_sums.h"
#include "engine/train/group/sample_exchange.h"

namespace tandem {

/// A lookup, and the type of the whole table by rows that it reads.
struct TableLookup {
  NodeId node;
  TensorType table;
};

/// Whether the ranks exchange less for lookups of the same ids where each sums what it has of every
/// bag, and sends sums in place of rows: all ranks' ids, sums and gradients of sums are fewer bytes
/// than ids, rows and their gradients, if all of these are of different rows. The ids have to
/// depend only on fed inputs: they are equally many for each sample, so that all ranks decide
/// alike. Weights must not depend on a state: their gradients would take a row for each id of all
/// ranks.
bool crosses_as_sums(const Graph& graph, const std::vector<TableLookup>& lookups,
                     const RankShares& ranks);

/// Writes such lookups, of [bags, ids of one]:
///
///   ids -> ShardIds -> AllGather -> OwnRows -> the lookup itself in the own part -> ReduceScatter
///
/// so that a rank gets the sums of its own samples, and the gradients of those of all samples for
/// its rows (AllGather).
class ShardBags {
 public:
  explicit ShardBags(const RankShares& ranks) : ranks_(ranks) {}

  /// The results of an EmbeddingBag of the old graph, whose table had that many rows and now is
  /// this rank's part.
  ValueId sums(GraphRewrite& to, NodeId bag, std::int64_t rows);

 private:
  ValueId own_rows(GraphRewrite& to, ValueId ids, std::int64_t rows);
  ValueId weights(GraphRewrite& to, ValueId weights);
  /// The values of all ranks, with `filler` for the samples that a rank has fewer than others.
  ValueId gathered(GraphBuilder& g, ValueId of_ids, double filler);

  const RankShares ranks_;
  std::map<std::pair<std::int32_t, std::int64_t>, ValueId> own_rows_;  // by ids, rows of the table
  std::map<std::int32_t, ValueId> weights_;
};

}  // namespace tandem
