// Counts the positions in a model's own tables, where it looks up the positions of a sequence
// itself.
#include <algorithm>

#include "api/init/facts.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem::api {
namespace {

/// The first of `length` consecutive ids; -1: they are not consecutive.
std::int64_t first_of_range(const HostTensor& ids, std::int64_t length) {
  if (!is_integer(ids.dtype()) || ids.type().elements() != length || length < 2) return -1;
  const double first = ids.number(0);
  for (std::int64_t i = 1; i < length; ++i) {
    if (ids.number(i) != first + static_cast<double>(i)) return -1;
  }
  return first >= 0 ? static_cast<std::int64_t>(first) : -1;
}

}  // namespace

std::int64_t positions_of(const ModelFacts& model, std::int64_t length) {
  std::int64_t positions = 0;
  for (const Graph* graph : {&model.imported.graph, &model.forward}) {
    for (const Node& node : graph->nodes) {
      if (!is_row_lookup(node)) continue;
      const Value& ids = graph->value(node.inputs[1]);
      const TensorType& table = graph->type(node.inputs[0]);
      if (ids.kind != ValueKind::constant || !ids.constant || table.rank() != 2) continue;
      const std::int64_t first = first_of_range(*ids.constant, length);
      if (first < 0) continue;
      const std::int64_t rows = table.shape[0] - first;
      positions = positions == 0 ? rows : std::min(positions, rows);
    }
  }
  return positions;
}

}  // namespace tandem::api
