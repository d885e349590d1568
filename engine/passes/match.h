// Small questions about a graph that the recognising passes ask.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem {

class Match {
 public:
  explicit Match(const Graph& graph) : graph_(graph) {}

  const Graph& graph() const { return graph_; }
  NodeId producer(ValueId value) const { return value ? graph_.value(value).producer : NodeId{}; }

  /// The producer of `value` where it is that operator (and `value` its first output).
  const Node* is(ValueId value, std::string_view op) const {
    const NodeId id = producer(value);
    if (!id || graph_.value(value).output_index != 0) return nullptr;
    const Node& node = graph_.node(id);
    return node.op->name == op ? &node : nullptr;
  }

  /// A constant whose elements are all the same number.
  std::optional<double> number(ValueId value) const {
    if (!value || !graph_.is_constant(value)) return std::nullopt;
    const HostTensor& tensor = *graph_.value(value).constant;
    const std::int64_t count = tensor.type().elements();
    if (count == 0 || count > 65536 || tensor.dtype() == DType::boolean) return std::nullopt;
    const double first = tensor.number(0);
    for (std::int64_t i = 1; i < count; ++i) {
      if (tensor.number(i) != first) return std::nullopt;
    }
    return first;
  }
  /// Exactly that number: one that every float type holds, such as 0, 0.5, 1 or 2.
  bool is_number(ValueId value, double wanted) const { return number(value) == wanted; }

  /// For a commutative node: the other input where one of them satisfies `test`, else -1.
  template <class Test>
  ValueId other_where(const Node& node, Test test) const {
    if (test(node.inputs[1])) return node.inputs[0];
    if (test(node.inputs[0])) return node.inputs[1];
    return {};
  }

  /// The nodes between `leaves`, where the search ends, and `root`, without root's own producer.
  std::vector<NodeId> interior(ValueId root, const std::vector<ValueId>& leaves) const {
    std::vector<NodeId> found;
    std::vector<ValueId> todo = graph_.node(producer(root)).inputs;
    while (!todo.empty()) {
      const ValueId value = todo.back();
      todo.pop_back();
      const NodeId node = producer(value);
      if (!node || std::find(leaves.begin(), leaves.end(), value) != leaves.end()) continue;
      if (std::find(found.begin(), found.end(), node) != found.end()) continue;
      found.push_back(node);
      const std::vector<ValueId>& inputs = graph_.node(node).inputs;
      todo.insert(todo.end(), inputs.begin(), inputs.end());
    }
    return found;
  }

  /// Writes value = factor * rest[0] * rest[1] * ... by walking Mul and Div by constants. A
  /// constant may widen the result, so that callers compare types. A constant of unusual magnitude
  /// stays in `rest`: a part of the product could overflow or vanish with it where the whole does
  /// not.
  struct Product {
    double factor = 1;
    std::vector<ValueId> rest;
  };
  Product product(ValueId value, int depth = 4) const {
    Product result;
    multiply(value, depth, result);
    return result;
  }

 private:
  std::optional<double> usual_number(ValueId value) const {
    const auto found = number(value);
    const bool usual = found && std::abs(*found) >= 0x1p-16 && std::abs(*found) <= 0x1p16;
    return usual ? found : std::nullopt;
  }

  void multiply(ValueId value, int depth, Product& result) const {
    if (const auto constant = usual_number(value)) {
      result.factor *= *constant;
      return;
    }
    if (depth > 0) {
      if (const Node* node = is(value, "Mul")) {
        multiply(node->inputs[0], depth - 1, result);
        multiply(node->inputs[1], depth - 1, result);
        return;
      }
      if (const Node* node = is(value, "Div")) {
        if (const auto divisor = usual_number(node->inputs[1])) {
          result.factor /= *divisor;
          multiply(node->inputs[0], depth - 1, result);
          return;
        }
      }
    }
    result.rest.push_back(value);
  }

  const Graph& graph_;
};

/// Whether `value` depends on any state.
inline bool reads_state(const Graph& graph, ValueId value) {
  std::unordered_set<std::int32_t> seen;
  std::vector<ValueId> todo{value};
  while (!todo.empty()) {
    const ValueId next = todo.back();
    todo.pop_back();
    if (!next || !seen.insert(next.index).second) continue;
    if (graph.value(next).kind == ValueKind::state) return true;
    const NodeId maker = graph.value(next).producer;
    if (!maker) continue;
    const std::vector<ValueId>& inputs = graph.node(maker).inputs;
    todo.insert(todo.end(), inputs.begin(), inputs.end());
  }
  return false;
}

}  // namespace tandem
