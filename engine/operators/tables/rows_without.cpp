// kept = the first `count` rows that are not among the first `without_count` of `without`, both
// ascending: the rows of the next step that this one does not change, kept for step + 1. The
// results overwrite what the step before kept.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_rows_without(const NodeView& view) {
  for (const std::size_t i : {0u, 2u}) {
    require_dtype(view, i, DType::int64);
    require_rank(view, i, 1);
  }
  for (const std::size_t i : {1u, 3u}) require_type(view, i, {DType::int32, {}});
  const TensorType& rows = view.input(0);
  const TensorType count{DType::int32, {}}, steps{DType::int64, {}};
  require_type(view, 4, steps);
  require_type(view, 5, rows);
  require_type(view, 6, count);
  require_type(view, 7, steps);
  return {rows, count, steps};
}

}  // namespace

// Beyond `kept_count` rows `kept` holds -1.
Operator rows_without() {
  return {.name = "RowsWithout",
          .inputs = {{"rows"},
                     {"count"},
                     {"without"},
                     {"without_count"},
                     {"step"},
                     {"old_kept"},
                     {"old_count"},
                     {"old_step"}},
          .outputs = {{"kept"}, {"kept_count"}, {"kept_step"}},
          .infer = infer_rows_without,
          .not_differentiable = "made by lowering, after the gradient",
          .aliases = {{0, 5}, {1, 6}, {2, 7}},
          .engine_only = true};
}

}  // namespace tandem::operators
