// Which rows of a table got a gradient in the micro-batches of a step: a mark per row, and the
// marked rows grouped as UniqueIndices groups ids, for a dense sum of gradients.
#include <limits>

#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"

namespace tandem::operators {
namespace {

TensorType require_marks(const NodeView& view) {
  require_dtype(view, 0, DType::boolean);
  const TensorType& marks = view.input(0);
  if (marks.rank() != 1 || marks.elements() > std::numeric_limits<std::int32_t>::max()) {
    view.fail("marks of rows", "one for each of fewer than 2^31 rows", to_string(marks));
  }
  return marks;
}

std::vector<TensorType> infer_mark(const NodeView& view) {
  require_flag(view, "first");
  for (std::size_t i = 1; i < view.input_count(); ++i) require_index(view, i);
  return {require_marks(view)};
}

// A mark for each id; the first micro-batch of a step clears all of them.
Cost mark_cost(const NodeView& view) {
  double bytes = view.attributes().flag("first") ? static_cast<double>(view.input(0).bytes()) : 0;
  for (std::size_t i = 1; i < view.input_count(); ++i)
    bytes += static_cast<double>(view.input(i).bytes()) + element_number(view.input(i));
  return {0, bytes};
}

std::vector<TensorType> infer_touched(const NodeView& view) {
  const std::int64_t rows = require_marks(view).elements();
  return {{DType::int64, {rows}},
          {DType::int32, {rows}},
          {DType::int32, {rows + 1}},
          {DType::int32, {}}};
}

}  // namespace

// `first`: marks of the step before are forgotten.
Operator mark_rows() {
  return {.name = "MarkRows",
          .role = Role::row_marks,
          .inputs = {{"marks"}, {.name = "ids", .variadic = true}},
          .outputs = {{"new_marks"}},
          .attributes = {{"first", std::int64_t{0}}},
          .infer = infer_mark,
          .not_differentiable = "its result is no number",
          .cost = mark_cost,
          .aliases = {{.output = 0, .input = 0}},
          .engine_only = true};
}

// Row k of the marked ones has one position: its own row of the dense sum.
Operator touched_rows() {
  return {.name = "TouchedRows",
          .role = Role::marked_rows,
          .inputs = {{"marks"}},
          .outputs = {{"unique"}, {"order"}, {"offsets"}, {"count"}},
          .infer = infer_touched,
          .not_differentiable = "its results are integers",
          .engine_only = true};
}

}  // namespace tandem::operators
