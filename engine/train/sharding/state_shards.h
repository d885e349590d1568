// Sharded optimizer states (`shard = "state"`, ZeRO-1; `"state+gradient"`, ZeRO-2): each rank
// updates one part of a parameter that all have whole.
#pragma once

#include "engine/graph/builder.h"
#include "engine/graph/state_shard.h"
#include "engine/train/graph/rank_sums.h"
#include "engine/train/updates/add_update.h"
#include "engine/train/updates/parameter_choice.h"

namespace tandem {

/// Shards the states of one training graph; does nothing for one rank.
class StateShards {
 public:
  StateShards(GraphBuilder& g, const RankShares& shares, const Shardings& shards)
      : g_(g), shares_(shares), shards_(shards) {}

  /// Smaller parameters stay whole: a part of theirs would save less memory than the plan needs for
  /// it, which is a copy and two operands of exchanges.
  static constexpr std::size_t least_bytes = std::size_t{4} << 10;

  /// Whether the states of this parameter are sharded. Throws Error{usage} where its optimizer
  /// cannot be cut into parts.
  bool covers(const Chosen& chosen) const;
  /// Whether the gradient of a covered parameter is sharded, too: each micro-batch's is cut, and a
  /// rank adds up only its own part.
  bool covers_gradient(const Chosen& chosen) const;
  /// Makes the update one of the own part: its gradient is summed over all ranks, the parameter
  /// becomes a flat copy of the part. `promptly`: what is computed later waits for the sum, so that
  /// the whole gradient's memory serves the next ones.
  void cut(UpdateRequest& update, bool promptly);
  /// The parts of all ranks, in the shape of the parameter. `update` was cut.
  ValueId gathered(const UpdateRequest& update, ValueId part);
  /// Gathers the new parts and writes them into the parameter. `update` was cut.
  void put_together(const UpdateRequest& update, ValueId new_part);

 private:
  /// The elements, flat, followed by zeros up to `count`.
  ValueId padded(ValueId value, std::int64_t count);
  ValueId slice(ValueId flat, std::int64_t first, std::int64_t count);

  GraphBuilder& g_;
  const RankShares shares_;
  const Shardings& shards_;
};

}  // namespace tandem
