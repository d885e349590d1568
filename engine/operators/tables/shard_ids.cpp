// places[i] = the place of the row that ids[i] names among the shards of all ranks (shard_rows.h).
#include "engine/operators/tables/shard_rows.h"

#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_shard_ids(const NodeView& view) {
  require_index(view, 0);
  return {{checked_shards(view).place_type(), view.input(0).shape}};
}

}  // namespace

// Negative ids count from the end, as in Gather; absent ones stay absent. Ids of no row are
// reported, and become the nearest row. Places are int32 where all fit.
Operator shard_ids() {
  return {.name = "ShardIds",
          .inputs = {{"ids"}},
          .outputs = {{"places"}},
          .attributes = {{"rows", std::int64_t{0}, true}, {"ranks", std::int64_t{0}, true}},
          .infer = infer_shard_ids,
          .not_differentiable = "its results are integers",
          .engine_only = true};
}

}  // namespace tandem::operators
