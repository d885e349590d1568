// Checks that a graph keeps all rules that the other phases rely on.
#include <algorithm>
#include <unordered_set>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/operators/grouped_update.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

[[noreturn]] void breach(std::string path, std::string message, std::string expected = "",
                         std::string got = "") {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "the graph is not well formed: " + std::move(message),
                         .path = std::move(path),
                         .expected = std::move(expected),
                         .got = std::move(got)});
}

bool in_range(const Graph& graph, ValueId id) {
  return id.index >= 0 && id.index < static_cast<std::int32_t>(graph.values.size());
}

std::string place(const Node& node, std::size_t index) {
  return node.path.empty() ? "node " + std::to_string(index) : node.path;
}

void check_values(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const Value& value : graph.values) {
    if (value.name.empty()) breach("", "a value has no name");
    if (!names.insert(value.name).second) breach(value.name, "two values have this name");
    for (std::int64_t extent : value.type.shape) {
      if (extent < 0) breach(value.name, "negative extent", ">= 0", std::to_string(extent));
    }
    const bool computed = value.kind == ValueKind::computed;
    if (computed != static_cast<bool>(value.producer)) {
      breach(value.name, computed ? "a computed value has no producer"
                                  : "only computed values have a producer");
    }
    if (computed) {
      const auto n = static_cast<std::size_t>(value.producer.index);
      const auto k = static_cast<std::size_t>(value.output_index);
      const bool known = n < graph.nodes.size() && k < graph.nodes[n].outputs.size();
      if (!known || &graph.values[graph.nodes[n].outputs[k].index] != &value) {
        breach(value.name, "the producer does not name the value as that output");
      }
    }
    if ((value.kind == ValueKind::constant) != static_cast<bool>(value.constant)) {
      breach(value.name, "constants, and only they, hold a tensor");
    }
    if (value.constant && !(value.constant->type() == value.type)) {
      breach(value.name, "constant of another type", to_string(value.type),
             to_string(value.constant->type()));
    }
  }
}

void check_arity(const Node& node, const std::string& where) {
  const std::vector<Port>& inputs = node.op->inputs;
  const bool variadic = !inputs.empty() && inputs.back().variadic;
  const std::size_t least = inputs.size() - (variadic ? 1 : 0);
  if (node.inputs.size() < least || (!variadic && node.inputs.size() > inputs.size())) {
    breach(where, "number of inputs of " + node.op->name, std::to_string(inputs.size()),
           std::to_string(node.inputs.size()));
  }
  if (!has_outputs(*node.op, node.outputs.size())) {
    breach(where, "number of outputs of " + node.op->name, std::to_string(node.op->outputs.size()),
           std::to_string(node.outputs.size()));
  }
}

void check_operands(const Graph& graph, const Node& node, std::size_t index,
                    const std::string& where) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    const Port& port = node.op->inputs[std::min(i, node.op->inputs.size() - 1)];
    if (!id) {
      if (!port.optional) breach(where, "input '" + port.name + "' is missing");
      continue;
    }
    if (!in_range(graph, id)) breach(where, "input id out of range");
    const NodeId producer = graph.value(id).producer;
    if (producer && producer.index >= static_cast<std::int32_t>(index)) {
      breach(where, "reads '" + graph.value(id).name + "' before it is made");
    }
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!in_range(graph, node.outputs[i])) breach(where, "output id out of range");
    const Value& value = graph.value(node.outputs[i]);
    if (value.producer.index != static_cast<std::int32_t>(index) ||
        value.output_index != static_cast<std::int32_t>(i)) {
      breach(where, "output '" + value.name + "' names another producer");
    }
  }
}

void check_attributes(const Node& node, const std::string& where) {
  for (const AttributeSpec& spec : node.op->attributes) {
    const AttributeValue* value = node.attributes.find(spec.name);
    if (value == nullptr) breach(where, "attribute '" + spec.name + "' is missing");
    if (value->index() != spec.value.index()) {
      breach(where, "attribute '" + spec.name + "' has another type",
             "like " + to_string(spec.value), to_string(*value));
    }
  }
  for (const auto& [name, value] : node.attributes.entries()) {
    const bool declared =
        std::any_of(node.op->attributes.begin(), node.op->attributes.end(),
                    [&name = name](const AttributeSpec& s) { return s.name == name; });
    if (!declared) breach(where, "attribute '" + name + "' is not one of " + node.op->name);
  }
}

void check_types(const Graph& graph, const Node& node, const std::string& where) {
  const std::vector<TensorType> types = node.op->infer(NodeView{graph, node});
  if (types.size() != node.outputs.size()) {
    breach(where, "number of outputs", std::to_string(types.size()),
           std::to_string(node.outputs.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!(graph.type(node.outputs[i]) == types[i])) {
      breach(where, "type of '" + graph.value(node.outputs[i]).name + "'", to_string(types[i]),
             to_string(graph.type(node.outputs[i])));
    }
  }
}

// Whether `node` overwrites the storage of `initial` with output `output`.
bool overwrites(const Node& node, int output, ValueId initial) {
  for (const Alias& alias : aliases_of(node)) {
    if (alias.output == output && node.inputs[alias.input] == initial) return true;
  }
  return false;
}

void check_states(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  std::unordered_set<std::int32_t> written;
  for (const State& state : graph.states) {
    if (!names.insert(state.name).second) breach(state.name, "two states have this name");
    if (!in_range(graph, state.initial) || !in_range(graph, state.final)) {
      breach(state.name, "value id of the state out of range");
    }
    if (graph.value(state.initial).kind != ValueKind::state) {
      breach(state.name, "the initial value is not of kind state");
    }
    if (!(graph.type(state.initial) == state.start.type())) {
      breach(state.name, "type of the value before the first step",
             to_string(graph.type(state.initial)), to_string(state.start.type()));
    }
    if (state.final == state.initial) continue;
    const Value& final = graph.value(state.final);
    if (!(final.type == graph.type(state.initial))) {
      breach(state.name, "type of the final value", to_string(graph.type(state.initial)),
             to_string(final.type));
    }
    if (!written.insert(state.final.index).second) {
      breach(state.name, "its final value belongs to two states");
    }
    if (!final.producer ||
        !overwrites(graph.node(final.producer), final.output_index, state.initial)) {
      breach(state.name, "the final value is not written into the state's storage");
    }
    for (std::size_t n = final.producer.index + 1; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (std::find(node.inputs.begin(), node.inputs.end(), state.initial) != node.inputs.end()) {
        breach(place(node, n), "reads state '" + state.name + "' after it was overwritten");
      }
    }
  }
}

void check_ends(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const NamedValue& input : graph.inputs) {
    if (!names.insert(input.name).second) breach(input.name, "two inputs have this name");
    if (!in_range(graph, input.value) || graph.value(input.value).kind != ValueKind::input) {
      breach(input.name, "the input's value is not of kind input");
    }
  }
  names.clear();
  for (const NamedValue& output : graph.outputs) {
    if (!names.insert(output.name).second) breach(output.name, "two outputs have this name");
    if (!in_range(graph, output.value)) breach(output.name, "output id out of range");
  }
}

}  // namespace

void verify(const Graph& graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const std::string where = place(node, n);
    if (node.op == nullptr) breach(where, "a node has no operator");
    check_arity(node, where);
    check_operands(graph, node, n, where);
    check_attributes(node, where);
    if (node.body) verify(*node.body);
  }
  check_values(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    check_types(graph, graph.nodes[n], place(graph.nodes[n], n));
  }
  check_states(graph);
  check_ends(graph);
}

}  // namespace tandem
