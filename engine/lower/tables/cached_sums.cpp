// A row that is looked up in a table and in the cache of some of its rows is 0 in one of the two:
//   a + Gather(cache, hot)   becomes   GatherAdd(a, cache, hot)
// which only touches the cached rows where it may overwrite a.
#include "engine/lower/placed_graph.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

// Whether the ids are places in a cache: hot ids of SplitIds, copied or not.
bool are_places(const Graph& graph, ValueId ids) {
  for (NodeId from = graph.value(ids).producer; from; from = graph.value(ids).producer) {
    const Node& node = graph.node(from);
    if (node.op->role == Role::id_split) return graph.value(ids).output_index == 1;
    if (node.op->name != "Transfer" && !is_view(node)) return false;
    ids = node.inputs[0];
  }
  return false;
}

// The lookup in a cache that `value` comes from, where only `sum` reads it; else -1.
NodeId cached_lookup(PlacedEdit& edit, ValueId value, NodeId sum) {
  const Graph& graph = edit.graph();
  const NodeId producer = graph.value(value).producer;
  if (!producer || !(edit.only_reader(value) == sum)) return {};
  const Node& node = graph.node(producer);
  if (!looks_up_rows(node)) return {};
  if (graph.type(node.inputs[0]).dtype != graph.type(value).dtype) return {};
  return are_places(graph, node.inputs[1]) ? producer : NodeId{};
}

}  // namespace

PlacedGraph cached_sums(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  for (const NodeId id : edit.nodes()) {
    const Node sum = edit.graph().node(id);
    if (sum.op->name != "Add" ||
        !(edit.graph().type(sum.inputs[0]) == edit.graph().type(sum.inputs[1])))
      continue;
    const NodeId lookup = cached_lookup(edit, sum.inputs[1], id);
    if (!lookup || edit.device(lookup) != edit.device(id)) continue;
    const std::vector<ValueId> operands = edit.graph().node(lookup).inputs;
    const NodeId both =
        edit.add("GatherAdd", {sum.inputs[0], operands[0], operands[1]}, {}, id, {lookup});
    if (!edit.stays_if_fast(both)) continue;
    edit.replace(sum.outputs[0], edit.graph().node(both).outputs[0]);
  }
  return edit.finish();
}

}  // namespace tandem
