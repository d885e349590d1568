// y[i...] = base[i...] + x[indices[i...]], rows of x; y = base where the index is absent_id
// (rows.h). Lowering adds what a cache holds to what was looked up in its table.

#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_gather_add(const NodeView& view) {
  require_float(view, 0);
  require_same_dtype(view, 1, 0);
  require_index(view, 2);
  const TensorType& x = view.input(1);
  if (x.rank() < 1 || x.shape[0] < 1) view.fail("there are no rows", "rows", to_string(x));
  Shape shape = view.input(2).shape;
  shape.insert(shape.end(), x.shape.begin() + 1, x.shape.end());
  require_shape(view, 0, shape);
  return {view.input(0)};
}

// Rows that are read, not the whole of x.
Cost gather_add_cost(const NodeView& view) {
  const TensorType &y = view.input(0), &indices = view.input(2);
  return {element_number(y),
          3 * static_cast<double>(y.bytes()) + static_cast<double>(indices.bytes())};
}

}  // namespace

Operator gather_add() {
  return {.name = "GatherAdd",
          .role = Role::cached_lookup,
          .inputs = {{"base"}, {"x"}, {"indices"}},
          .outputs = {{"y"}},
          .infer = infer_gather_add,
          .not_differentiable = "made by lowering, after the gradient",
          .cost = gather_add_cost,
          .engine_only = true};
}

}  // namespace tandem::operators
