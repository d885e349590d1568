// dx[i] = the sum of dy over the positions of group i of UniqueIndices: the gradient of rows that
// are looked up by their places in these groups. After the first `count` groups dx may hold
// anything: its readers take only the rows that occur.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_rows_sum(const NodeView& view) {
  const Shape& shape = checked_shape(view, "shape");
  if (shape.empty()) view.fail("attribute 'shape'", "rows", "a scalar");
  require_dtype(view, 0, DType::int32);
  require_type(view, 1, {DType::int32, {shape[0] + 1}});
  require_type(view, 2, {DType::int32, {}});
  if (view.input_count() < 4) view.fail("no gradient", "at least one dy", "none");
  require_lookup_gradients(view, 3, view.input(0).elements(),
                           element_count(Shape(shape.begin() + 1, shape.end())));
  return {{view.input(3).dtype, shape}};
}

}  // namespace

Operator rows_sum() {
  std::vector<AttributeSpec> attributes{{"shape", Ints(), true}};
  for (AttributeSpec& spec : lookup_attributes()) attributes.push_back(std::move(spec));
  return {.name = "RowsSum",
          .inputs = {{"order"}, {"offsets"}, {"count"}, {.name = "dy", .variadic = true}},
          .outputs = {{"dx"}},
          .attributes = std::move(attributes),
          .infer = infer_rows_sum,
          .not_differentiable = "a gradient of lookups",
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
