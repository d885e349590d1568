// rows[i] = the row in the shard of rank `rank` that is at places[i] among the shards of all ranks
// (ShardIds), an absent id where it is another rank's. `rows`: of the whole table; `filled`: about
// the fraction of the result that names rows, as in ExchangeRows.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"
#include "engine/operators/tables/shard_rows.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_own_rows(const NodeView& view) {
  const ShardedRows shards = checked_shards(view);
  const std::int64_t rank = view.attributes().integer("rank");
  if (rank < 0 || rank >= shards.ranks)
    view.fail("rank is out of range", "0 to " + std::to_string(shards.ranks - 1),
              std::to_string(rank));
  require_dtype(view, 0, shards.place_type());
  return {{shards.row_type(), view.input(0).shape}};
}

}  // namespace

// Row numbers are int32 where all of a shard fit. Absent places stay absent.
Operator own_rows() {
  return {.name = "OwnRows",
          .inputs = {{"places"}},
          .outputs = {{"rows"}},
          .attributes = {{"rows", std::int64_t{0}, true},
                         {"ranks", std::int64_t{0}, true},
                         {"rank", std::int64_t{0}, true},
                         {"filled", 1.0}},
          .infer = infer_own_rows,
          .not_differentiable = "its results are integers",
          .engine_only = true};
}

}  // namespace tandem::operators
