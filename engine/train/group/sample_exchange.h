// Converts between values of a rank's own samples and values of the samples of all ranks.
#pragma once

#include "engine/graph/builder.h"
#include "engine/train/graph/rank_sums.h"

namespace tandem {

/// A value for the samples of all ranks, of which each rank has an equal block along one axis. Axis
/// 0 has as many rows for each rank as the one with the most samples has; the own ones of a rank
/// come first there, the rest is padding, and so is what the last block has above `extent`.
struct SplitValue {
  ValueId value;
  std::size_t axis = 0;     // above 0
  std::int64_t extent = 0;  // extent of the whole value along it
};

/// Adds the exchanges. Axis 0 of a value of own samples counts them, or something of which each
/// sample has equally many.
class SampleExchange {
 public:
  SampleExchange(GraphBuilder& g, const RankShares& ranks) : g_(g), ranks_(ranks) {}

  /// Whether rows [axis 0] of a value of own samples can be brought together.
  bool takes_rows(std::int64_t own) const;
  /// The number of rows of all ranks, padding included, for that many own rows. Throws Error{usage}
  /// where they are not equally many for each sample and shares differ.
  std::int64_t rows_of_all(std::int64_t own) const { return ranks_.ranks * most_rows(own); }

  /// The rows of all ranks (AllGather), padding of `filler` among them.
  ValueId gathered(ValueId own, double filler = 0);
  /// The own block of the samples of all ranks (AllToAll).
  SplitValue split(ValueId own, std::size_t axis);
  /// The whole value for the own samples, `rows` of them (AllToAll).
  ValueId joined(const SplitValue& value, std::int64_t rows);
  /// For a value that is a partial sum on each rank, for the samples of all: the total for the own
  /// samples (ReduceScatter).
  ValueId summed(ValueId parts, std::int64_t rows);
  /// What all ranks send for the own samples: [ranks, rows, ...] of [rows of all, ...] (AllToAll).
  ValueId of_each_rank(ValueId of_all, std::int64_t rows);

  /// The own block of a value that is the same on all ranks, with zeros as padding.
  ValueId own_block(ValueId whole, std::size_t axis);
  /// The block without the padding that it may have after `extent`.
  ValueId filled(ValueId block, std::size_t axis, std::int64_t extent);

 private:
  std::int64_t most_rows(std::int64_t own) const;
  ValueId padded(ValueId value, std::size_t axis, std::int64_t count, double filler = 0);
  ValueId slice(ValueId value, std::size_t axis, std::int64_t first, std::int64_t count);
  ValueId collective(const char* name, ValueId value);

  GraphBuilder& g_;
  const RankShares ranks_;
};

}  // namespace tandem
