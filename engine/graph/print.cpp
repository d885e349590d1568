// The graph as text.
#include "engine/graph/graph.h"
#include "engine/graph/text.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

std::string reference(const Graph& graph, ValueId id) {
  return id ? "%" + graph.value(id).name : "-";
}

std::string declaration(const Graph& graph, ValueId id) {
  return id ? reference(graph, id) + ": " + to_string(graph.type(id)) : "-";
}

std::string joined_attributes(const Attributes& attributes) {
  if (attributes.entries().empty()) return "";
  return " {" +
         joined(attributes.entries(), ", ",
                [](const auto& entry) { return entry.first + "=" + to_string(entry.second); }) +
         "}";
}

void print(const Graph& graph, const std::string& indent, std::string& text) {
  for (const NamedValue& input : graph.inputs) {
    text += indent + "input " + declaration(graph, input.value);
    if (graph.value(input.value).name != input.name) text += "  # " + input.name;
    text += "\n";
  }
  for (const State& state : graph.states) {
    text += indent + "state " + declaration(graph, state.initial);
    if (!(state.final == state.initial)) text += " -> " + reference(graph, state.final);
    if (state.trainable) text += " trainable";
    if (!state.path.empty()) text += "  # " + state.path;
    text += "\n";
  }
  for (const Value& value : graph.values) {
    if (value.kind != ValueKind::constant) continue;
    text += indent + "constant %" + value.name + ": " + to_string(value.type);
    if (value.constant && value.type.elements() == 1) {
      text += " = " + to_string(AttributeValue(value.constant->number(0)));
    }
    text += "\n";
  }
  for (const Node& node : graph.nodes) {
    std::string line =
        joined(node.outputs, ", ", [&](ValueId output) { return declaration(graph, output); });
    line += " = " + node.op->name + "(" +
            joined(node.inputs, ", ", [&](ValueId input) { return reference(graph, input); }) +
            ")" + joined_attributes(node.attributes);
    if (!node.path.empty()) line += "  # " + node.path;
    text += indent + line + "\n";
    if (node.body) print(*node.body, indent + "  ", text);
  }
  for (const NamedValue& output : graph.outputs) {
    text += indent + "output " + output.name + " = " + reference(graph, output.value) + "\n";
  }
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text;
  print(graph, "", text);
  return text;
}

}  // namespace tandem
