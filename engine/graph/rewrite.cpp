#include "engine/graph/rewrite.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tandem {
namespace {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  std::vector<NodeId> todo;
  auto need = [&](ValueId id) {
    if (!id) return;
    const NodeId producer = graph.value(id).producer;
    if (producer && !live[producer.index]) {
      live[producer.index] = true;
      todo.push_back(producer);
    }
  };
  for (const NamedValue& output : graph.outputs) need(output.value);
  for (const State& state : graph.states) need(state.final);
  while (!todo.empty()) {
    const NodeId node = todo.back();
    todo.pop_back();
    for (ValueId input : graph.node(node).inputs) need(input);
  }
  return live;
}

}  // namespace

GraphRewrite::GraphRewrite(const Graph& from, const OperatorSet& operators)
    : from_(from), builder_(operators), map_(from.values.size()), live_(live_nodes(from)) {
  for (const NamedValue& input : from_.inputs) {
    map_[input.value.index] = builder_.input(input.name, from_.type(input.value));
  }
  for (const State& state : from_.states) map_[state.initial.index] = builder_.state(state);
}

ValueId GraphRewrite::mapped(ValueId old) {
  if (!old) return {};
  ValueId& to = map_[old.index];
  if (!to) {
    const Value& value = from_.value(old);
    assert(value.kind == ValueKind::constant && "a value is used before its producer was copied");
    to = builder_.constant(*value.constant, value.name);
  }
  return to;
}

void GraphRewrite::scope_of(NodeId id, const std::vector<NodeId>& merged) {
  const Node& node = from_.node(id);
  GraphBuilder::Scope scope{node.path, node.phase, node.origins};
  for (NodeId other : merged) {
    for (const std::string& origin : from_.node(other).origins) {
      if (std::find(scope.origins.begin(), scope.origins.end(), origin) == scope.origins.end()) {
        scope.origins.push_back(origin);
      }
    }
  }
  builder_.set_scope(std::move(scope));
}

void GraphRewrite::copy(NodeId id) {
  const Node& node = from_.node(id);
  scope_of(id);
  std::vector<ValueId> inputs;
  for (ValueId input : node.inputs) inputs.push_back(mapped(input));
  const std::vector<ValueId> outputs =
      builder_.node(node.op->name, std::move(inputs), node.attributes, node.body);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i]) continue;
    map_[node.outputs[i].index] = outputs[i];
    builder_.rename(outputs[i], from_.value(node.outputs[i]).name);
  }
}

void GraphRewrite::replace(ValueId old, ValueId replacement) {
  map_[old.index] = replacement;
  if (builder_.graph().value(replacement).kind == ValueKind::computed) {
    builder_.rename(replacement, from_.value(old).name);
  }
}

Graph GraphRewrite::finish() {
  for (const NamedValue& output : from_.outputs) builder_.output(output.name, mapped(output.value));
  for (const State& state : from_.states) {
    if (state.final != state.initial) {
      builder_.write_state(mapped(state.initial), mapped(state.final));
    }
  }
  return builder_.finish();
}

Graph rewrite(const Graph& graph, const OperatorSet& operators,
              const std::function<bool(GraphRewrite&, NodeId)>& visit) {
  GraphRewrite to(graph, operators);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeId id{static_cast<std::int32_t>(i)};
    if (to.is_live(id) && !visit(to, id)) to.copy(id);
  }
  return to.finish();
}

Graph remove_dead(const Graph& graph, const OperatorSet& operators) {
  return rewrite(graph, operators, [](GraphRewrite&, NodeId) { return false; });
}

}  // namespace tandem
