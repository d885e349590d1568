// Where the rows of a step are found: the first `count` of `unique`, of which the first
// `kept_count` of `kept` (both ascending) have been fetched by the step before, if kept_step =
// step; else none have.
//
//   late[0], late[1], ... = the rows that have not been fetched, ascending
//   place[u] = k where unique[u] = kept[k], or the length of `kept` + k where unique[u] = late[k]
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_plan_rows(const NodeView& view) {
  for (const std::size_t i : {0u, 2u}) {
    require_dtype(view, i, DType::int64);
    require_rank(view, i, 1);
  }
  const TensorType count{DType::int32, {}}, step{DType::int64, {}};
  require_type(view, 1, count);
  require_type(view, 3, count);
  require_type(view, 4, step);
  require_type(view, 5, step);
  const TensorType& unique = view.input(0);
  return {unique, count, {DType::int32, unique.shape}};
}

}  // namespace

// Beyond the rows that there are, `late` holds -1 and `place` 0.
Operator plan_rows() {
  return {.name = "PlanRows",
          .role = Role::row_plan,
          .inputs = {{"unique"}, {"count"}, {"kept"}, {"kept_count"}, {"kept_step"}, {"step"}},
          .outputs = {{"late"}, {"late_count"}, {"place"}},
          .infer = infer_plan_rows,
          .not_differentiable = "made by lowering, after the gradient",
          .engine_only = true};
}

}  // namespace tandem::operators
