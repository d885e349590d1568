// Which rows each rank is asked for: for ascending places (ShardIds, UniqueIndices) rows[i] = the
// row in the shard of the rank that has it, counts[r] = how many rank r has. `rows`: of the whole
// table.
#include "engine/operators/tables/shard_rows.h"

#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_shard_rows(const NodeView& view) {
  const std::int64_t ranks = view.attributes().integer("ranks");
  if (ranks < 1) view.fail("ranks is out of range", "at least 1", std::to_string(ranks));
  require_dtype(view, 0, DType::int64);
  require_rank(view, 0, 1);
  require_type(view, 1, {DType::int32, {}});
  return {view.input(0), {DType::int32, {ranks}}};
}

}  // namespace

// After the first `count` places rows are absent ids.
Operator shard_rows() {
  return {.name = "ShardRows",
          .inputs = {{"places"}, {"count"}},
          .outputs = {{"rows"}, {"counts"}},
          .attributes = {{"rows", std::int64_t{0}, true}, {"ranks", std::int64_t{0}, true}},
          .infer = infer_shard_rows,
          .not_differentiable = "its results are integers",
          .engine_only = true};
}

}  // namespace tandem::operators
