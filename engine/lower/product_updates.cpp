// Plain SGD on a weight whose gradient is one product is that product: w -= lr * a b, no gradient
// buffer.
#include <unordered_set>

#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

bool is_constant_number(const Graph& graph, ValueId value, double wanted) {
  return value && graph.is_constant(value) && graph.type(value).elements() == 1 &&
         graph.value(value).constant->number(0) == wanted;
}

std::unordered_set<std::int32_t> updated_states(const Graph& graph) {
  std::unordered_set<std::int32_t> updated;
  for (const State& state : graph.states) {
    if (!(state.final == state.initial)) updated.insert(state.initial.index);
  }
  return updated;
}

}  // namespace

PlacedGraph product_updates(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  const std::unordered_set<std::int32_t> updated = updated_states(edit.graph());
  for (const NodeId id : edit.nodes()) {
    const Node update = edit.graph().node(id);
    if (update.op->name != "SgdUpdate") continue;
    if (update.attributes.number("momentum") != 0 ||
        update.attributes.number("weight_decay") != 0) {
      continue;
    }
    // (master, grad, momentum_buffer?, lr, step, scale, skip)
    const Graph& graph = edit.graph();
    if (update.inputs[2] || !is_constant_number(graph, update.inputs[5], 1)) continue;
    if (update.inputs[6] && !is_constant_number(graph, update.inputs[6], 0)) continue;
    const ValueId gradient = update.inputs[1];
    const bool mixed = graph.type(gradient).dtype != graph.type(update.inputs[0]).dtype;
    if (mixed || !update.attributes.text("weight").empty()) continue;
    const NodeId producer = graph.value(gradient).producer;
    if (!producer || !edit.only_reader(gradient) || edit.device(producer) != edit.device(id))
      continue;
    const Node product = graph.node(producer);
    if (product.op->role != Role::product || graph.type(product.inputs[0]).rank() != 2 ||
        graph.type(product.inputs[1]).rank() != 2) {
      continue;
    }
    // A product that reads the weight itself would see it change while it runs, and two weights
    // whose products read each other could not be updated in any order.
    const auto changes = [&](ValueId operand) {
      return updated.count(behind_views(graph, operand).index) > 0;
    };
    if (changes(product.inputs[0]) || changes(product.inputs[1])) continue;
    const NodeId fused = edit.add(
        "GemmSgd", {update.inputs[0], product.inputs[0], product.inputs[1], update.inputs[3]}, {},
        id, {producer});
    if (!edit.stays_if_fast(fused)) continue;
    edit.replace(update.outputs[0], edit.graph().node(fused).outputs[0]);
  }
  return edit.finish();
}

}  // namespace tandem
