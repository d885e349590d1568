#include "engine/gradient/row_gradient.h"

#include "engine/operators/operator.h"
#include "engine/operators/scalar_functions.h"

namespace tandem {
namespace {

// Collects lookups along the first axis, and sums of them, from a tree of Adds; false for others.
bool collect(const Graph& graph, ValueId value, RowGradient& to) {
  const NodeId producer = graph.value(value).producer;
  if (!producer) return false;
  const Node& node = graph.node(producer);
  if (node.op->role == Role::lookup_gradient && node.attributes.integer("axis") == 0) {
    to.dy.push_back(node.inputs[0]);
    to.ids.push_back(node.inputs[1]);
    to.bags.push_back(1);
    to.weights.emplace_back();
    return true;
  }
  if (node.op->role == Role::embedding_bag_gradient) {
    to.dy.push_back(node.inputs[0]);
    to.ids.push_back(node.inputs[1]);
    to.bags.push_back(graph.type(node.inputs[1]).shape.back());
    to.weights.push_back(node.inputs.size() > 2 ? node.inputs[2] : ValueId{});
    return true;
  }
  if (node.op->scalar != ScalarFunction::add) return false;
  for (ValueId input : node.inputs) {
    if (!(graph.type(input) == graph.type(value)) || !collect(graph, input, to)) return false;
  }
  return true;
}

}  // namespace

std::optional<RowGradient> row_gradient(const Graph& graph, ValueId gradient) {
  RowGradient rows;
  if (!collect(graph, gradient, rows)) return std::nullopt;
  for (ValueId ids : rows.ids) {
    if (graph.is_constant(ids)) return std::nullopt;
  }
  return rows;
}

std::int64_t id_count(const Graph& graph, const RowGradient& rows) {
  std::int64_t count = 0;
  for (ValueId ids : rows.ids) count += graph.type(ids).elements();
  return count;
}

}  // namespace tandem
