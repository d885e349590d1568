// Groups ids by the row that they name: the rows that occur, and for each the positions of its ids.
#include <algorithm>
#include <limits>

#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_unique_indices(const NodeView& view) {
  const std::int64_t rows = view.attributes().integer("rows");
  if (rows < 1) view.fail("rows is out of range", "at least 1", std::to_string(rows));
  std::int64_t ids = 0;
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    require_index(view, i);
    ids += view.input(i).elements();
  }
  if (ids > std::numeric_limits<std::int32_t>::max()) {
    view.fail("too many ids in one pass", "fewer than 2^31; set a smaller micro_batch",
              std::to_string(ids));
  }
  const std::int64_t capacity = std::min(ids, rows);
  return {{DType::int64, {capacity}},
          {DType::int32, {ids}},
          {DType::int32, {capacity + 1}},
          {DType::int32, {}},
          {DType::int32, {ids}}};
}

}  // namespace

// Each input has ids of its own integer type. Negative ids count from the end, as in Gather; absent
// ones are in no group. Ids of no row are reported, unless `quiet`: those of a step that may never
// come.
Operator unique_indices() {
  return {.name = "UniqueIndices",
          .role = Role::id_groups,
          .inputs = {{.name = "ids", .variadic = true}},
          .outputs = {{"unique"}, {"order"}, {"offsets"}, {"count"}, {"inverse"}},
          .attributes = {{"rows", std::int64_t{0}, true}, {"quiet", std::int64_t{0}}},
          .infer = infer_unique_indices,
          .not_differentiable = "its results are integers",
          .engine_only = true};
}

}  // namespace tandem::operators
