// A lowered graph as text: nodes with their kernels, values with their layouts and buffers.
#include <fmt/format.h>

#include "engine/lower/lowered.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

std::string place(const Lowered& lowered, ValueId id) {
  const LoweredValue& value = lowered.values[id.index];
  const Shape& shape = lowered.graph.type(id).shape;
  std::string text;
  if (is_row_major(value.layout, shape) && value.layout.offset == 0) {
    text = "row-major";
  } else if (is_channels_last(value.layout, shape) && value.layout.offset == 0) {
    text = "channels-last";
  } else {
    text = to_string(value.layout);
  }
  if (!(value.storage == id)) text += " in %" + lowered.graph.value(value.storage).name;
  return text;
}

std::string operands(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (ValueId id : ids) {
    if (!text.empty()) text += ", ";
    text += id ? "%" + graph.value(id).name : "-";
  }
  return text;
}

}  // namespace

std::string to_text(const Lowered& lowered) {
  const Graph& graph = lowered.graph;
  std::string text;
  for (const NamedValue& input : graph.inputs) {
    text += fmt::format("input %{}: {}\n", graph.value(input.value).name,
                        to_string(graph.type(input.value)));
  }
  for (const State& state : graph.states) {
    text += fmt::format("state %{}: {} {}\n", graph.value(state.initial).name,
                        to_string(graph.type(state.initial)), place(lowered, state.initial));
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const LoweredNode& how = lowered.nodes[n];
    for (ValueId output : node.outputs) {
      text += fmt::format("%{}: {} {}\n", graph.value(output).name, to_string(graph.type(output)),
                          place(lowered, output));
    }
    text += fmt::format("  = {}({}) {}  # {}\n", node.op->name, operands(graph, node.inputs),
                        how.transfer     ? "transfer"
                        : how.collective ? "over all ranks"
                        : how.is_view()  ? "view"
                                         : "by " + how.kernel->name,
                        node.path);
    if (node.body) {
      for (const Node& inner : node.body->nodes) {
        text += fmt::format("    %{} = {}({})\n", node.body->value(inner.outputs[0]).name,
                            inner.op->name, operands(*node.body, inner.inputs));
      }
    }
  }
  for (const NamedValue& output : graph.outputs) {
    text += fmt::format("output {} = %{}\n", output.name, graph.value(output.value).name);
  }
  for (const std::string& note : lowered.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace tandem
