#include "api/model/mixed_samples.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "engine/operators/operator.h"

namespace tandem::api {
namespace {

/// Finds the sample axes of a graph's values: those whose length differs in the same graph for
/// another number of samples.
class SampleAxes {
 public:
  SampleAxes(const Graph& graph, const Graph& other) : graph_(graph) {
    for (const Value& value : other.values) shapes_.emplace(value.name, &value.type.shape);
  }

  /// Unset where the other graph does not have the value.
  std::optional<std::vector<std::size_t>> of(ValueId value) const {
    const auto twin = shapes_.find(graph_.value(value).name);
    const Shape& shape = graph_.type(value).shape;
    if (twin == shapes_.end() || twin->second->size() != shape.size()) return std::nullopt;
    std::vector<std::size_t> axes;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != (*twin->second)[i]) axes.push_back(i);
    }
    return axes;
  }
  bool has_one(ValueId value) const {
    const auto axes = of(value);
    return !axes || axes->size() == 1;
  }

 private:
  const Graph& graph_;
  std::unordered_map<std::string_view, const Shape*> shapes_;
};

/// Whether the node, whose result has the shape of its input, combines elements along `axis`.
bool runs_along(const Graph& graph, const Node& node, std::size_t axis) {
  const std::string& op = node.op->name;
  if (op != "Softmax" && op != "LogSoftmax" && op != "CumSum") return false;
  const std::int64_t own = node.attributes.integer("axis");
  const auto rank = static_cast<std::int64_t>(graph.type(node.inputs[0]).rank());
  return (own < 0 ? own + rank : own) == static_cast<std::int64_t>(axis);
}

std::vector<bool> nodes_before(const Graph& graph, const std::vector<ValueId>& wanted) {
  std::vector<bool> values(graph.values.size(), false), nodes(graph.nodes.size(), false);
  for (const ValueId value : wanted) values[static_cast<std::size_t>(value.index)] = true;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    nodes[n] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return id && values[static_cast<std::size_t>(id.index)];
    });
    if (!nodes[n]) continue;
    for (const ValueId id : node.inputs) {
      if (id) values[static_cast<std::size_t>(id.index)] = true;
    }
  }
  return nodes;
}

}  // namespace

bool has_sample_axis(const Graph& graph, const Graph& other, ValueId value) {
  return SampleAxes(graph, other).has_one(value);
}

const Node* find_mixed_samples(const Graph& graph, const Graph& other,
                               const std::vector<ValueId>& wanted) {
  const std::vector<bool> counts = nodes_before(graph, wanted);
  const SampleAxes sample_axes(graph, other);
  std::vector<bool> of_samples(graph.values.size(), false);
  const auto mark = [&](ValueId id) { of_samples[static_cast<std::size_t>(id.index)] = true; };
  for (const NamedValue& input : graph.inputs) {
    const auto axes = sample_axes.of(input.value);
    if (axes && axes->size() == 1) mark(input.value);  // other inputs are shared by all samples
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id && of_samples[static_cast<std::size_t>(id.index)];
    });
    if (!reads) continue;
    for (const ValueId id : node.outputs) {
      if (id) mark(id);
    }
    if (!counts[n] || !node.outputs[0]) continue;
    if (!sample_axes.has_one(node.outputs[0])) return &node;
    const auto axes = node.inputs[0] ? sample_axes.of(node.inputs[0]) : std::nullopt;
    if (axes && axes->size() == 1 && runs_along(graph, node, (*axes)[0])) return &node;
  }
  return nullptr;
}

}  // namespace tandem::api
