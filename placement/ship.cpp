// `ship`: what crosses of look-ups in a table, where no rule says rows or results.
#include <algorithm>

#include "engine/operators/operator.h"
#include "placement/resolver.h"

namespace tandem {
namespace {

// Ids of one pass that look up rows of the table `state`; 0 where something else reads it, too.
std::int64_t looked_up(const Graph& graph, ValueId table) {
  std::int64_t ids = 0;
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!(node.inputs[i] == table)) continue;
      if (node.op->name != "Gather" || i != 0 || node.attributes.integer("axis") != 0) return 0;
      ids += graph.type(node.inputs[1]).elements();
    }
  }
  return ids;
}

}  // namespace

void PolicyResolver::finish_ship(std::size_t p) {
  ParameterAttributes& to = result_.parameters[p];
  const State& state = graph_.states[items_.parameters[p].state];
  const std::int64_t ids = looked_up(graph_, state.initial);
  to.table = ids > 0 && state.kind == StateKind::parameter;
  if (!to.table) {
    to.ship.value = Ship::results;
    return;
  }
  if (to.ship_wish != ShipWish::automatic) {
    to.ship.value = to.ship_wish == ShipWish::rows ? Ship::rows : Ship::results;
    return;
  }
  // Forward and back: rows with an int32 index for each id, against one row for each id.
  const std::int64_t table_rows = graph_.type(state.initial).shape[0];
  const std::int64_t row_bytes = static_cast<std::int64_t>(to.bytes) / table_rows;
  std::int64_t rows = std::min(ids, table_rows);
  std::string known = "at most ";
  if (options_.unique_rows) {
    if (const auto found = options_.unique_rows(state.name)) {
      rows = std::min(rows, *found);
      known = "";
    }
  }
  const std::int64_t by_rows = 2 * rows * row_bytes + 4 * ids, by_results = 2 * ids * row_bytes;
  to.ship.value = by_rows < by_results ? Ship::rows : Ship::results;
  to.ship.reason.text += (to.ship.reason.rule >= 0 ? ", auto: " : ": auto: ") + known +
                         std::to_string(rows) + " rows for " + std::to_string(ids) + " ids";
}

}  // namespace tandem
