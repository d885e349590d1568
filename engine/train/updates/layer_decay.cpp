#include "engine/train/updates/layer_decay.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

bool is_number_part(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// "layers.3" of "layers.3.fc1:weight"; "" where no part is a number.
std::string block_of_path(const std::string& path) {
  const std::string_view scope = std::string_view(path).substr(0, path.rfind(':'));
  for (std::size_t start = 0; start <= scope.size();) {
    const std::size_t end = std::min(scope.find('.', start), scope.size());
    if (is_number_part(scope.substr(start, end - start))) return std::string(scope.substr(0, end));
    start = end + 1;
  }
  return "";
}

/// Walks the nodes in order: each value knows the layer that it has reached.
class LayerWalk {
 public:
  explicit LayerWalk(const Graph& graph)
      : graph_(graph), values_(graph.values.size()), layers_(graph.states.size(), -1) {
    for (const NamedValue& input : graph.inputs) values_[at(input.value)].has_data = true;
    for (std::size_t i = 0; i < graph.states.size(); ++i) {
      const State& state = graph.states[i];
      if (state.kind == StateKind::parameter) values_[at(state.initial)].states = {i};
    }
  }

  LayerNumbers run() {
    for (const Node& node : graph_.nodes) visit(node);
    int last = 0;
    for (const auto& [block, layer] : blocks_) last = std::max(last, layer);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const bool is_behind = layers_[i] == last && block_of_path(graph_.states[i].path).empty();
      if (is_behind) layers_[i] = last + 1;
    }
    return {std::move(layers_), last + 1, static_cast<int>(blocks_.size())};
  }

 private:
  struct WalkedValue {
    bool has_data = false;            // it depends on what is fed
    int layer = 0;                    // the layer of such a value
    std::vector<std::size_t> states;  // the parameters that another value is made of
  };
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

  void visit(const Node& node) {
    WalkedValue made;
    for (const ValueId input : node.inputs) {
      if (input.index < 0) continue;
      const WalkedValue& value = values_[at(input)];
      made.has_data = made.has_data || value.has_data;
      made.layer = std::max(made.layer, value.layer);
      made.states.insert(made.states.end(), value.states.begin(), value.states.end());
    }
    if (made.has_data) {
      made.layer = apply(made.states, made.layer);
      made.states.clear();
    }
    for (const ValueId output : node.outputs) {
      if (output.index >= 0) values_[at(output)] = made;
    }
  }

  /// The layer of what these parameters are applied to becomes that of the result.
  int apply(const std::vector<std::size_t>& states, int before) {
    int result = before;
    for (const std::size_t i : states) {
      const std::string block = block_of_path(graph_.states[i].path);
      int layer = before;
      if (!block.empty()) layer = blocks_.emplace(block, before + 1).first->second;
      if (layers_[i] < 0) layers_[i] = layer;
      result = std::max(result, layer);
    }
    return result;
  }

  const Graph& graph_;
  std::vector<WalkedValue> values_;
  std::vector<int> layers_;
  std::map<std::string, int> blocks_;
};

}  // namespace

LayerNumbers number_layers(const Graph& graph) { return LayerWalk(graph).run(); }

void decay_by_layers(const Graph& graph, const OptimizerConfig& config, std::vector<Chosen>& chosen,
                     std::vector<std::string>& notes) {
  const LayerNumbers numbers = number_layers(graph);
  if (numbers.blocks == 0) {
    throw Error(ErrorKind::usage,
                at(config.where, "optimizer.layer_decay",
                   "the network has no blocks by which rates could decay",
                   "parameters with a number in their path, like \"layers.3.fc1:weight\"",
                   chosen.empty() ? "" : "\"" + chosen[0].parameter.path + "\"",
                   "set learning rates in optimizer.groups"));
  }
  std::map<std::string, int> layer_of;
  for (std::size_t i = 0; i < graph.states.size(); ++i) {
    if (numbers.of_state[i] >= 0) layer_of[graph.states[i].name] = numbers.of_state[i];
  }
  struct Told {
    std::string first;
    int parameters = 0;
  };
  std::map<int, Told> told;
  for (Chosen& c : chosen) {
    const auto found = layer_of.find(c.parameter.name);
    const int layer = found == layer_of.end() ? numbers.head : found->second;
    c.options.lr *= std::pow(config.layer_decay, numbers.head - layer);
    Told& here = told[layer];
    if (here.parameters++ == 0) here.first = c.parameter.path;
  }
  std::string text;
  for (const auto& [layer, here] : told) {
    text += fmt::format("{}{:.4g} for {}", text.empty() ? "" : "; ",
                        std::pow(config.layer_decay, numbers.head - layer), here.first);
    if (here.parameters > 1) text += fmt::format(" and {} more", here.parameters - 1);
  }
  notes.push_back(
      fmt::format("layer_decay {:g}: learning rates times {}", config.layer_decay, text));
}

}  // namespace tandem
