// y = the sum of squares of a row-sparse gradient: sum over rows of |sum of dy over the row's
// positions|^2; its part of a global norm.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_rows_sum_of_squares(const NodeView& view) {
  const std::int64_t columns = view.attributes().integer("columns");
  if (columns < 1) view.fail("columns is out of range", "at least 1", std::to_string(columns));
  require_dtype(view, 0, DType::int32);
  require_dtype(view, 1, DType::int32);
  require_type(view, 2, {DType::int32, {}});
  if (view.input_count() < 4) view.fail("no gradient", "at least one dy", "none");
  require_lookup_gradients(view, 3, view.input(0).elements(), columns);
  return {{DType::float32, {}}};
}

}  // namespace

Operator rows_sum_of_squares() {
  std::vector<AttributeSpec> attributes{{"columns", std::int64_t{0}, true}};
  for (AttributeSpec& spec : lookup_attributes()) attributes.push_back(std::move(spec));
  return {.name = "RowsSumOfSquares",
          .role = Role::rows_norm,
          .inputs = {{"order"}, {"offsets"}, {"count"}, {.name = "dy", .variadic = true}},
          .outputs = {{"y"}},
          .attributes = std::move(attributes),
          .infer = infer_rows_sum_of_squares,
          .not_differentiable = "measures gradients for clipping",
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
