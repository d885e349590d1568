#include "engine/passes/head.h"

#include <algorithm>
#include <optional>
#include <set>

#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

constexpr const char* what_a_head_is = "a MatMul, Gemm or Conv whose weight is a parameter";

/// A product with a weight that is a parameter.
struct LastLayer {
  NodeId node;
  const State* weight = nullptr;
  std::size_t out_axis = 0;  // the weight's axis of outputs
};

class LastLayers {
 public:
  explicit LastLayers(const Graph& graph) : graph_(graph), readers_(readers_of(graph)) {}

  std::vector<ResizedState> resized(const LayerRule& rule) {
    const std::optional<LastLayer> layer = rule.at.empty() ? before_outputs(rule) : named(rule);
    if (!layer || !feeds_outputs_alone(*layer, rule) || !is_read_once(*layer, rule)) return {};
    const Shape& old = layer->weight->start.shape();
    ResizedState weight{layer->weight->name, old, 1};
    weight.fan_in =
        layer->weight->start.type().elements() / std::max<std::int64_t>(old[layer->out_axis], 1);
    weight.shape[layer->out_axis] = rule.classes;
    std::vector<ResizedState> result{weight};
    if (const State* bias = bias_of(*layer, old[layer->out_axis])) {
      ResizedState other{bias->name, bias->start.shape(), weight.fan_in};
      if (std::int64_t* extent = width_of_bias(*layer, other.shape)) *extent = rule.classes;
      result.push_back(std::move(other));
    }
    return result;
  }

  /// Names of the weights of layers behind outputs, if these feed nothing else.
  std::set<std::string> weights() const {
    std::set<std::string> names;
    for (const NamedValue& output : graph_.outputs) {
      std::string stopped_at;
      const std::optional<LastLayer> layer = behind(output.value, stopped_at);
      if (layer && !other_reader(*layer)) names.insert(layer->weight->name);
    }
    return names;
  }

  std::vector<Diagnostic> problems;

 private:
  void fail(const LayerRule& rule, std::string path, std::string message, std::string expected,
            std::string got, std::string fix) {
    problems.push_back(at(rule.where, std::move(path), "parameters.head: " + message,
                          std::move(expected), std::move(got), std::move(fix)));
  }

  const State* parameter(ValueId value) const {
    for (const State& state : graph_.states) {
      if (state.initial == value && state.kind == StateKind::parameter) return &state;
    }
    return nullptr;
  }

  /// The parameter that a product reads as its weight, perhaps through a Transpose.
  std::optional<LastLayer> product(NodeId id) const {
    const Node& node = graph_.node(id);
    const std::string& op = node.op->name;
    if (op != "MatMul" && op != "Conv") return std::nullopt;
    ValueId weight = node.inputs[1];
    bool swapped = false;
    if (const NodeId maker = graph_.value(weight).producer) {
      const Node& view = graph_.node(maker);
      if (view.op->name != "Transpose" || view.attributes.integers("perm") != Ints{1, 0})
        return std::nullopt;
      weight = view.inputs[0];
      swapped = true;
    }
    const State* state = parameter(weight);
    const std::size_t rank = graph_.type(weight).shape.size();
    if (state == nullptr || (op == "MatMul" && rank != 2)) return std::nullopt;
    if (op == "Conv" && node.attributes.integer("group") != 1) return std::nullopt;
    return LastLayer{id, state, op == "Conv" || swapped ? 0u : 1u};
  }

  /// The operands of a node that are neither constants nor parameters.
  std::vector<ValueId> data_of(const Node& node) const {
    std::vector<ValueId> data;
    for (const ValueId input : node.inputs) {
      if (!input || graph_.is_constant(input) || parameter(input) != nullptr) continue;
      data.push_back(input);
    }
    return data;
  }

  /// The layer found by walking back from an output through what shapes, scales or squashes it.
  std::optional<LastLayer> behind(ValueId value, std::string& stopped_at) const {
    while (const NodeId id = graph_.value(value).producer) {
      if (std::optional<LastLayer> layer = product(id)) return layer;
      const Node& node = graph_.node(id);
      const std::vector<ValueId> data = data_of(node);
      if (data.size() != 1) {
        stopped_at = node.path + " (" + node.op->name + ")";
        return std::nullopt;
      }
      value = data[0];
    }
    stopped_at = "\"" + graph_.value(value).name + "\"";
    return std::nullopt;
  }

  std::optional<LastLayer> before_outputs(const LayerRule& rule) {
    std::optional<LastLayer> found;
    for (const NamedValue& output : graph_.outputs) {
      std::string stopped_at;
      const std::optional<LastLayer> layer = behind(output.value, stopped_at);
      if (!layer) {
        fail(rule, output.name, "there is no such layer before this output", what_a_head_is,
             stopped_at, "name the layer with `at`");
        return std::nullopt;
      }
      if (found && !(found->node == layer->node)) {
        fail(rule, output.name, "the outputs come from several last layers",
             "one layer, or `at` that names one",
             "\"" + found->weight->path + "\" and \"" + layer->weight->path + "\"",
             "name the layer with `at`, each in a table of its own");
        return std::nullopt;
      }
      found = layer;
    }
    return found;
  }

  std::optional<LastLayer> named(const LayerRule& rule) {
    const Selector selector(rule.at);
    const ParameterNames names(graph_);
    std::optional<LastLayer> found;
    std::string other;  // a parameter that the rule covers and that is no product's weight
    for (const State& state : graph_.states) {
      if (state.kind != StateKind::parameter) continue;
      if (names.covers(selector, state)) other = state.path;
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const std::optional<LastLayer> layer = product(NodeId{static_cast<std::int32_t>(n)});
      if (!layer || !names.covers(selector, *layer->weight)) continue;
      if (found) {
        fail(rule, rule.at, "`at` covers several layers", "one layer",
             "\"" + found->weight->path + "\" and \"" + layer->weight->path + "\"",
             "name the weight of one");
        return std::nullopt;
      }
      found = layer;
    }
    if (found) return found;
    if (other.empty())
      fail(rule, "", "\"" + rule.at + "\" matches no parameter", "", "",
           names.no_match_fix(rule.at, graph_));
    else
      fail(rule, other, "this parameter is not the weight of a layer", what_a_head_is, "",
           "name the weight of the last layer");
    return std::nullopt;
  }

  /// Walks forward from the layer, to the first node that does not get its data only from it, or
  /// that is a layer itself; an invalid id where there is none.
  NodeId other_reader(const LastLayer& layer) const {
    std::set<std::int32_t> ours;
    std::vector<ValueId> todo;
    const auto add = [&](const Node& node) {
      for (const ValueId output : node.outputs) {
        if (output && ours.insert(output.index).second) todo.push_back(output);
      }
    };
    add(graph_.node(layer.node));
    while (!todo.empty()) {
      const ValueId value = todo.back();
      todo.pop_back();
      for (const NodeId id : readers_[static_cast<std::size_t>(value.index)]) {
        const Node& node = graph_.node(id);
        const std::vector<ValueId> data = data_of(node);
        const bool alone = std::all_of(data.begin(), data.end(),
                                       [&](ValueId input) { return ours.contains(input.index); });
        if (product(id) || !alone || node.body != nullptr) return id;
        add(node);
      }
    }
    return {};
  }

  bool feeds_outputs_alone(const LastLayer& layer, const LayerRule& rule) {
    const NodeId other = other_reader(layer);
    if (!other) return true;
    const Node& node = graph_.node(other);
    fail(rule, layer.weight->path, "this layer feeds more than the model's outputs", "a last layer",
         node.path + " (" + node.op->name + ") reads what it makes",
         "name the last layer with `at`, or export the model up to its outputs");
    return false;
  }

  bool is_read_once(const LastLayer& layer, const LayerRule& rule) {
    const auto& readers = readers_[static_cast<std::size_t>(layer.weight->initial.index)];
    if (readers.size() == 1) return true;
    std::string others;
    for (const NodeId id : readers) {
      others += (others.empty() ? "" : ", ") + graph_.node(id).path;
    }
    fail(rule, layer.weight->path, "other operators read the weight of this layer, too",
         "a weight of its own", others, "export the model with the last layer untied");
    return false;
  }

  /// What an Add after the product, or the convolution itself, adds to each output; null: none.
  const State* bias_of(const LastLayer& layer, std::int64_t width) const {
    const auto fits = [&](const State* state) {
      return state != nullptr && state->start.type().elements() == width &&
             readers_[static_cast<std::size_t>(state->initial.index)].size() == 1;
    };
    const Node& node = graph_.node(layer.node);
    if (node.op->name == "Conv" && node.inputs.size() > 2 && node.inputs[2]) {
      const State* bias = parameter(node.inputs[2]);
      return fits(bias) ? bias : nullptr;
    }
    ValueId value = node.outputs[0];
    while (readers_[static_cast<std::size_t>(value.index)].size() == 1) {
      const Node& next = graph_.node(readers_[static_cast<std::size_t>(value.index)][0]);
      const bool is_add = next.op->name == "Add";
      for (const ValueId input : next.inputs) {
        const State* bias = is_add && input ? parameter(input) : nullptr;
        if (fits(bias)) return bias;
      }
      // Gemm's alpha comes between product and Add.
      if (next.op->name != "Mul" && next.op->name != "Reshape") return nullptr;
      value = next.outputs[0];
    }
    return nullptr;
  }

  /// The extent of a bias that is the width of its layer; null for a single number for all outputs.
  /// Other extents are 1 as well where the layer has one output: the position in the product's
  /// result decides.
  static std::int64_t* width_of_bias(const LastLayer& layer, Shape& shape) {
    const Shape& weight = layer.weight->start.shape();
    const std::int64_t width = weight[layer.out_axis];
    const std::size_t behind = weight.size() - 2;  // spatial axes of a convolution
    if (shape.size() > behind && shape[shape.size() - 1 - behind] == width)
      return &shape[shape.size() - 1 - behind];
    const auto found = std::find(shape.begin(), shape.end(), width);
    return found == shape.end() ? nullptr : &*found;
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
};

}  // namespace

std::vector<ResizedState> resized_layers(const Graph& graph, const std::vector<LayerRule>& rules) {
  LastLayers layers(graph);
  std::vector<ResizedState> result;
  for (const LayerRule& rule : rules) {
    for (ResizedState& state : layers.resized(rule)) {
      const bool again = std::any_of(result.begin(), result.end(), [&](const ResizedState& other) {
        return other.name == state.name;
      });
      if (!again) {
        result.push_back(std::move(state));
        continue;
      }
      layers.problems.push_back(at(rule.where, state.name,
                                   "parameters.head: two tables change this layer", "", "",
                                   "leave one out"));
    }
  }
  if (!layers.problems.empty()) throw Error(ErrorKind::usage, std::move(layers.problems));
  return result;
}

std::set<std::string> weights_of_last_layers(const Graph& graph) {
  return LastLayers(graph).weights();
}

}  // namespace tandem
