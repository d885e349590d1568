// `ship`: what lookups in a table send, where no rule says rows or results.
#include <algorithm>

#include "engine/operators/tables/table_nodes.h"
#include "placement/resolver.h"

namespace tandem {
namespace {

struct Lookups {
  std::int64_t ids = 0;        // in a micro-batch; 0 where something else reads the table, too
  std::int64_t most_rows = 0;  // each lookup sends its rows by itself
  std::vector<std::size_t> nodes;
};

Lookups lookups_of(const Graph& graph, ValueId table) {
  Lookups found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!(node.inputs[i] == table)) continue;
      if (!looks_up_rows(node) || i != 0) return {};
      const std::int64_t ids = graph.type(node.inputs[1]).elements();
      found.ids += ids;
      found.most_rows += std::min(ids, graph.type(table).shape[0]);
      found.nodes.push_back(n);
    }
  }
  return found;
}

std::int64_t row_bytes_of(const ParameterAttributes& table, const TensorType& type) {
  return static_cast<std::int64_t>(table.bytes) / std::max<std::int64_t>(type.shape[0], 1);
}

}  // namespace

// The device of all readers of the value; -1 where there are several devices, or no readers.
int PolicyResolver::reader_device(ValueId result) const {
  int device = -1;
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    const std::vector<ValueId>& inputs = graph_.nodes[n].inputs;
    if (std::find(inputs.begin(), inputs.end(), result) == inputs.end()) continue;
    const int own = result_.operators[items_.operator_of_node[n]].run.value;
    if (own < host || (device >= 0 && own != device)) return -1;
    device = own;
  }
  return device;
}

void PolicyResolver::find_traffic(std::size_t p) {
  ParameterAttributes& to = result_.parameters[p];
  const State& state = graph_.states[items_.parameters[p].state];
  const Lookups lookups = lookups_of(graph_, state.initial);
  to.table = lookups.ids > 0 && state.kind == StateKind::parameter;
  if (!to.table) return;
  TableTraffic& traffic = to.traffic;
  traffic.ids = lookups.ids;
  traffic.rows = traffic.most_rows = lookups.most_rows;
  traffic.crosses = to.param.value == host && to.state.value == host &&
                    std::any_of(lookups.nodes.begin(), lookups.nodes.end(), [&](std::size_t n) {
                      return result_.operators[items_.operator_of_node[n]].run.value == host &&
                             reader_device(graph_.nodes[n].outputs[0]) > host;
                    });
  if (traffic.crosses && to.ship_request != ShipRequest::results) {
    if (!facts_.unique_rows) {
      result_.questions.unique_rows = true;
    } else if (const auto counted = facts_.unique_rows->find(state.name);
               counted != facts_.unique_rows->end()) {
      traffic.rows = std::min(traffic.most_rows, counted->second);
      traffic.counted = true;
    }
  }
  // Forward and back: rows with an int32 index for each id, against one row for each id.
  const std::int64_t row_bytes = row_bytes_of(to, graph_.type(state.initial));
  traffic.bytes_rows = 2 * traffic.rows * row_bytes + 4 * traffic.ids;
  traffic.bytes_results = 2 * traffic.ids * row_bytes;
}

void PolicyResolver::finish_ship(std::size_t p) {
  ParameterAttributes& to = result_.parameters[p];
  TableTraffic& traffic = to.traffic;
  if (!to.table) {
    to.ship.value = Ship::results;
    return;
  }
  traffic.bytes_uncached = to.ship_request == ShipRequest::rows ? traffic.bytes_rows
                           : to.ship_request == ShipRequest::results
                               ? traffic.bytes_results
                               : std::min(traffic.bytes_rows, traffic.bytes_results);
  if (to.cached.rows) {
    const TensorType& table = graph_.type(graph_.states[items_.parameters[p].state].initial);
    traffic.rows = std::min(traffic.most_rows, to.cached.cold_rows);
    traffic.counted = true;
    // One more int32 for each id names its row in the cache.
    traffic.bytes_rows = 2 * traffic.rows * row_bytes_of(to, table) + 8 * traffic.ids;
    traffic.bytes_results += 4 * traffic.ids;
  }
  if (to.ship_request != ShipRequest::automatic) {
    to.ship.value = to.ship_request == ShipRequest::rows ? Ship::rows : Ship::results;
    return;
  }
  to.ship.value = traffic.bytes_rows < traffic.bytes_results ? Ship::rows : Ship::results;
  to.ship.reason.text +=
      (to.ship.reason.rule >= 0 ? ", auto: " : ": auto: ") +
      std::string(traffic.counted ? "about " : "at most ") + std::to_string(traffic.rows) +
      " rows" + (to.cached.rows ? " outside the cache" : "") + " for " +
      std::to_string(traffic.ids) + " ids" + (traffic.counted ? ", counted in the data" : "");
}

}  // namespace tandem
