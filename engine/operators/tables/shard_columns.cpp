// Which rows each rank is asked for, where each has some columns of all of them: rows = the first
// `count` of the unique rows of a table (UniqueIndices), repeated for each rank, one rank after the
// other; counts[r] = count. What comes back has the columns of rank r of row i in its row
// positions[i, r] = r * count + i.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_shard_columns(const NodeView& view) {
  const std::int64_t ranks = view.attributes().integer("ranks");
  if (ranks < 1) view.fail("ranks is out of range", "at least 1", std::to_string(ranks));
  require_dtype(view, 0, DType::int64);
  require_rank(view, 0, 1);
  require_type(view, 1, {DType::int32, {}});
  const std::int64_t capacity = view.input(0).shape[0];
  return {{DType::int64, {ranks * capacity}},
          {DType::int32, {ranks}},
          {DType::int64, {capacity, ranks}}};
}

}  // namespace

// Rows after the first `count` of each rank, and positions of such rows, are absent ids.
Operator shard_columns() {
  return {.name = "ShardColumns",
          .inputs = {{"unique"}, {"count"}},
          .outputs = {{"rows"}, {"counts"}, {"positions"}},
          .attributes = {{"ranks", std::int64_t{0}, true}},
          .infer = infer_shard_columns,
          .not_differentiable = "its results are integers",
          .engine_only = true};
}

}  // namespace tandem::operators
