#include "engine/operators/product_weights.h"

#include <algorithm>

namespace tandem {
namespace {

bool swaps_a_matrix(const Graph& graph, const Node& node) {
  return node.op->role == Role::transpose && graph.type(node.inputs[0]).rank() == 2 &&
         node.attributes.integers("perm") == Ints{1, 0};
}

std::string who(const Node& node) { return node.path + " (" + node.op->name + ")"; }

// The obstacle among the readers of a matrix or of its transpose; "" where there is none.
std::string obstacle_among_readers(const Graph& graph, ValueId value) {
  for (const NamedValue& output : graph.outputs) {
    if (output.value == value) return "it is an output of the model";
  }
  for (const Node& node : graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), value) == node.inputs.end()) continue;
    if (swaps_a_matrix(graph, node)) {
      std::string behind = obstacle_among_readers(graph, node.outputs[0]);
      if (!behind.empty()) return behind;
    } else if (node.op->role != Role::product) {
      return who(node) + " reads it, which is no product";
    } else if (node.inputs[0] == value) {
      return who(node) + " has it as its left operand";
    } else if (graph.type(node.inputs[0]).rank() < 2) {
      return who(node) + " multiplies a vector with it";
    }
  }
  return "";
}

}  // namespace

ProductWeight product_weight(const Graph& graph, const Node& product) {
  if (product.op->role != Role::product || graph.type(product.inputs[1]).rank() != 2) return {};
  const ValueId right = product.inputs[1];
  if (const NodeId producer = graph.value(right).producer) {
    const Node& node = graph.node(producer);
    if (swaps_a_matrix(graph, node)) return {node.inputs[0], true};
  }
  return {right, false};
}

bool products_read(const Graph& graph, ValueId matrix) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return product_weight(graph, node).matrix == matrix;
  });
}

std::string product_weight_obstacle(const Graph& graph, ValueId matrix) {
  if (graph.type(matrix).rank() != 2) return "it is no matrix";
  if (!products_read(graph, matrix)) return "no product reads it as its right operand";
  return obstacle_among_readers(graph, matrix);
}

}  // namespace tandem
