// y[i...] = row place[indices[i...]] of `kept` and `late`, one after the other; zeros where the
// index is absent_id (rows.h).
#include <algorithm>

#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_gather_parts(const NodeView& view) {
  const TensorType &kept = view.input(0), &late = view.input(1);
  if (kept.rank() < 1) view.fail("a scalar has no rows", "rows", to_string(kept));
  require_same_dtype(view, 1, 0);
  Shape row = kept.shape;
  row[0] = late.rank() < 1 ? 0 : late.shape[0];
  require_shape(view, 1, row);
  require_dtype(view, 2, DType::int32);
  require_rank(view, 2, 1);
  require_dtype(view, 3, DType::int32);
  Shape shape = view.input(3).shape;
  shape.insert(shape.end(), kept.shape.begin() + 1, kept.shape.end());
  return {{kept.dtype, std::move(shape)}};
}

// Rows that are read are written once; the others are not touched.
Cost gather_parts_cost(const NodeView& view) {
  const TensorType &kept = view.input(0), &indices = view.input(3);
  const double row_bytes = static_cast<double>(kept.bytes()) /
                           static_cast<double>(std::max<std::int64_t>(kept.shape[0], 1));
  const double y = element_number(indices) * row_bytes;
  const double index_bytes = static_cast<double>(indices.bytes() + view.input(2).bytes());
  return {0, 2 * y + index_bytes};
}

}  // namespace

Operator gather_parts() {
  return {.name = "GatherParts",
          .inputs = {{"kept"}, {"late"}, {"place"}, {"indices"}},
          .outputs = {{"y"}},
          .infer = infer_gather_parts,
          .not_differentiable = "made by lowering, after the gradient",
          .cost = gather_parts_cost,
          .engine_only = true};
}

}  // namespace tandem::operators
