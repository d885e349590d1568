// y[i] = table[unique[i]] for i below count: the looked-up rows of a table, packed, as they cross
// to another device. Rows from count on are not written.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_gather_rows(const NodeView& view) {
  const TensorType& table = view.input(0);
  if (table.rank() < 1) view.fail("a scalar has no rows", "a table", to_string(table));
  require_dtype(view, 1, DType::int64);
  if (view.input(1).rank() != 1) view.fail("unique", "one axis", to_string(view.input(1)));
  require_type(view, 2, {DType::int32, {}});
  Shape shape = table.shape;
  shape[0] = view.input(1).elements();
  return {{table.dtype, std::move(shape)}};
}

// At most: rows are read and written once, the others are not touched.
Cost gather_rows_cost(const NodeView& view) {
  return {0, 2 * static_cast<double>(view.output(0).bytes()) +
                 static_cast<double>(view.input(1).bytes())};
}

}  // namespace

Operator gather_rows() {
  return {.name = "GatherRows",
          .role = Role::packed_rows,
          .inputs = {{"table"}, {"unique"}, {"count"}},
          .outputs = {{"y"}},
          .infer = infer_gather_rows,
          .not_differentiable = "made by lowering, after the gradient",
          .cost = gather_rows_cost,
          .drops_elements = true,
          .engine_only = true};
}

}  // namespace tandem::operators
