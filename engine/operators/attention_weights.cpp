#include "engine/operators/attention_weights.h"

#include <algorithm>
#include <vector>

#include "engine/operators/product_weights.h"

namespace tandem {
namespace {

bool keeps_heads(const Node& node) {
  return node.op->is_scalar() || node.op->role == Role::reshape || node.op->role == Role::transpose;
}

bool is_attention(const Graph& graph, const Node& node) {
  return node.op->name == "Attention" && graph.type(node.inputs[0]).rank() == 4;
}

// The attention that reads the value, or something that is made of it, as query, key or value.
NodeId attention_behind(const Graph& graph, ValueId value) {
  std::vector<char> is_behind(graph.values.size(), 0);
  is_behind[static_cast<std::size_t>(value.index)] = 1;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto is_read = [&](ValueId input) {
      return input && is_behind[static_cast<std::size_t>(input.index)] != 0;
    };
    if (is_attention(graph, node)) {
      if (std::any_of(node.inputs.begin(), node.inputs.begin() + 3, is_read))
        return NodeId{static_cast<std::int32_t>(n)};
      continue;
    }
    if (!keeps_heads(node) || !std::any_of(node.inputs.begin(), node.inputs.end(), is_read))
      continue;
    for (const ValueId output : node.outputs) is_behind[static_cast<std::size_t>(output.index)] = 1;
  }
  return {};
}

// The attention from which the value is made by operators that keep its heads, if any.
NodeId attention_before(const Graph& graph, ValueId value) {
  while (const NodeId producer = graph.value(value).producer) {
    const Node& node = graph.node(producer);
    if (is_attention(graph, node)) return producer;
    if (!keeps_heads(node)) return {};
    const auto made = std::find_if(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return input && graph.value(input).producer;
    });
    if (made == node.inputs.end()) return {};
    value = *made;
  }
  return {};
}

}  // namespace

AttentionWeight attention_weight(const Graph& graph, ValueId matrix) {
  AttentionWeight weight;
  weight.obstacle = product_weight_obstacle(graph, matrix);
  if (!weight.obstacle.empty()) return weight;
  for (const Node& node : graph.nodes) {
    const ProductWeight product = product_weight(graph, node);
    if (!(product.matrix == matrix)) continue;
    const std::size_t made = product.transposed ? 0 : 1;
    if (const NodeId behind = attention_behind(graph, node.outputs[0])) {
      weight.attention = behind;
      weight.axis = made;
    } else if (const NodeId before = attention_before(graph, node.inputs[0])) {
      weight.attention = before;
      weight.axis = 1 - made;
    } else {
      weight.obstacle = node.path + " (" + node.op->name +
                        ") neither makes queries, keys or values of attention by heads nor reads "
                        "what attention makes (one weight of all three has no whole heads)";
      return weight;
    }
  }
  weight.heads = graph.type(graph.node(weight.attention).inputs[0]).shape[1];
  return weight;
}

}  // namespace tandem
