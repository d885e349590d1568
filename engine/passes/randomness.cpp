#include "engine/passes/randomness.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "engine/graph/rewrite.h"
#include "engine/passes/noise.h"
#include "engine/passes/random_masks.h"

namespace tandem {
namespace {

class Recognition {
 public:
  explicit Recognition(const Graph& graph)
      : graph_(graph),
        noise_(graph),
        readers_(readers_of(graph)),
        masks_(noise_, readers_, outputs_) {
    for (const NamedValue& output : graph.outputs) outputs_.insert(output.value.index);
    for (const State& state : graph.states) outputs_.insert(state.final.index);
  }

  std::vector<RandomUse> run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!node.op->random || node.op->name == "Dropout") continue;
      RandomUse& use = uses_.emplace_back();
      use.path = node.path;
      use.op = node.op->name;
      use.drawn = node.outputs[0];
      use.drawn_name = graph_.value(use.drawn).name;
      use.dtype = graph_.type(use.drawn).dtype;
      sources_.push_back(NodeId{static_cast<std::int32_t>(n)});
    }
    for (std::size_t i = 0; i < uses_.size(); ++i) recognise(sources_[i], uses_[i]);
    return std::move(uses_);
  }

 private:
  /// Goes from the draw to the nodes that combine its numbers with other values; all must be known.
  void recognise(NodeId source, RandomUse& use) {
    std::vector<ValueId> todo{use.drawn};
    std::vector<NodeId> meetings;
    bool ends = false;  // whether the walk reaches an output, or an unknown form
    if (const Noise* noise = noise_.find(use.drawn)) use.mean = noise->mean();
    while (!todo.empty()) {
      const ValueId value = todo.back();
      todo.pop_back();
      ends = ends || outputs_.contains(value.index);
      for (const NodeId reader : readers_[static_cast<std::size_t>(value.index)]) {
        const ValueId made = graph_.node(reader).outputs[0];
        if (noise_.find(made) != nullptr) {
          todo.push_back(made);
        } else if (std::find(meetings.begin(), meetings.end(), reader) == meetings.end()) {
          meetings.push_back(reader);
        }
      }
    }
    std::string kind;
    std::vector<RandomUse::Bypass> bypasses;
    known_.clear();
    masked_.clear();
    for (const NodeId meeting : meetings) {
      if (ends) return;
      const std::string found = meet(source, meeting, bypasses);
      if (!found.empty() && kind.empty()) kind = found;
    }
    if (ends || kind.empty()) return;
    for (const NodeId meeting : meetings) {
      if (!known_.contains(meeting.index)) return;
    }
    if (!masks_.agree(masked_)) return;
    use.kind = kind;
    use.bypasses = std::move(bypasses);
    use.is_on = false;
  }

  /// The kind of use at the node that combines `source` with other values; "" where it is unknown.
  std::string meet(NodeId source, NodeId meeting, std::vector<RandomUse::Bypass>& bypasses) {
    const Node& node = graph_.node(meeting);
    const std::string_view op = node.op->name;
    if (op == "Where") {
      const Noise* mask = of_source(source, node.inputs[0]);
      return mask != nullptr && mask->is_mask() ? masked(source, meeting, *mask, bypasses) : "";
    }
    if (node.inputs.size() != 2) return "";
    const bool noise_first = of_source(source, node.inputs[0]) != nullptr;
    const Noise* noise = of_source(source, node.inputs[noise_first ? 0 : 1]);
    const ValueId x = node.inputs[noise_first ? 1 : 0];
    if (noise == nullptr || noise_.is_derived(x)) return "";
    if (op == "Mul" && noise->is_mask()) return masked(source, meeting, *noise, bypasses);
    if (noise->is_mask()) return "";
    if (op == "Add" || (op == "Sub" && !noise_first)) {
      if (!is_centred(*noise, 0)) return "";
      return bypass(meeting, x, bypasses) ? "noise added" : "";
    }
    if (op == "Mul") return multiplied(meeting, *noise, x, bypasses);
    if (op != "PRelu" || noise_first) return "";
    known_.insert(meeting.index);
    return "RReLU";
  }

  const Noise* of_source(NodeId source, ValueId value) const {
    const Noise* noise = noise_.find(value);
    return noise != nullptr && noise->source == source ? noise : nullptr;
  }

  static bool is_centred(const Noise& noise, double centre) {
    const double spread = std::max(std::abs(noise.second), std::abs(centre));
    return std::abs(noise.mean() - centre) <= 1e-5 * spread;
  }

  /// Handles x times numbers of mean 1; x times numbers of mean 0, added to x; and RReLU as
  /// Where(x <= 0, x * slope, x), whose slopes become their mean.
  std::string multiplied(NodeId meeting, const Noise& noise, ValueId x,
                         std::vector<RandomUse::Bypass>& bypasses) {
    const ValueId product = graph_.node(meeting).outputs[0];
    if (is_centred(noise, 1)) return bypass(meeting, x, bypasses) ? "noise multiplied" : "";
    const NodeId next = masks_.only_reader(product);
    if (!next) return "";
    const Node& reader = graph_.node(next);
    if (reader.op->name == "Where" && reader.inputs[0] != product) {
      const ValueId other = reader.inputs[reader.inputs[1] == product ? 2 : 1];
      if (!(other == x) || !compares_with_zero(reader.inputs[0], x)) return "";
      known_.insert(meeting.index);
      return "RReLU";
    }
    if (reader.op->name != "Add" || !is_centred(noise, 0)) return "";
    const ValueId other = reader.inputs[reader.inputs[0] == product ? 1 : 0];
    if (!(masks_.scaled(x).x == masks_.scaled(other).x)) return "";
    if (!add_bypass(reader.outputs[0], other, bypasses)) return "";
    known_.insert(meeting.index);
    return "noise added";
  }

  bool compares_with_zero(ValueId condition, ValueId x) const {
    const NodeId id = graph_.value(condition).producer;
    if (!id || graph_.node(id).inputs.size() != 2) return false;
    const Node& node = graph_.node(id);
    return (node.inputs[0] == x && noise_.number(node.inputs[1]) == 0.0) ||
           (node.inputs[1] == x && noise_.number(node.inputs[0]) == 0.0);
  }

  bool bypass(NodeId meeting, ValueId x, std::vector<RandomUse::Bypass>& bypasses) {
    if (!add_bypass(graph_.node(meeting).outputs[0], x, bypasses)) return false;
    known_.insert(meeting.index);
    return true;
  }

  bool add_bypass(ValueId value, ValueId instead, std::vector<RandomUse::Bypass>& bypasses) const {
    if (graph_.type(value) != graph_.type(instead) || graph_.is_constant(instead)) return false;
    bypasses.push_back({value, instead, graph_.value(value).name, graph_.value(instead).name});
    return true;
  }

  std::string masked(NodeId source, NodeId meeting, const Noise& mask,
                     std::vector<RandomUse::Bypass>& bypasses) {
    auto place = masks_.find(source, meeting, mask);
    if (!place || !add_bypass(place->value, place->instead, bypasses)) return "";
    for (const NodeId id : place->read) known_.insert(id.index);
    const bool is_alpha = place->law == MaskedPlace::Law::alpha_dropout;
    std::string kind = is_alpha ? "alpha dropout" : kind_of(source, place->instead);
    masked_.push_back(std::move(*place));
    return kind;
  }

  /// The kind of dropout, by how many elements share one number of the mask.
  std::string kind_of(NodeId source, ValueId x) const {
    const std::int64_t drawn = graph_.type(graph_.node(source).outputs[0]).elements();
    const TensorType& type = graph_.type(x);
    if (drawn == type.elements()) return "dropout";
    return drawn == 1 || drawn == type.shape[0] ? "stochastic depth" : "dropout of channels";
  }

  const Graph& graph_;
  const NoiseMap noise_;
  const std::vector<std::vector<NodeId>> readers_;
  std::set<std::int32_t> outputs_;
  const RandomMasks masks_;
  std::set<std::int32_t> known_;     // for the current draw: nodes whose meaning is known
  std::vector<MaskedPlace> masked_;  // for the current draw
  std::vector<RandomUse> uses_;
  std::vector<NodeId> sources_;
};

}  // namespace

std::vector<RandomUse> random_uses(const Graph& graph) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op->random && node.op->name != "Dropout";
  });
  return any ? Recognition(graph).run() : std::vector<RandomUse>{};
}

Graph without_randomness(const Graph& graph, const OperatorSet& operators,
                         const std::vector<RandomUse>& uses) {
  const bool any =
      std::any_of(uses.begin(), uses.end(), [](const RandomUse& use) { return !use.is_on; });
  if (!any) return graph;
  const auto visit = [&](GraphRewrite& rewrite, NodeId id) {
    const Node& node = graph.node(id);
    GraphBuilder& g = rewrite.builder();
    for (const RandomUse& use : uses) {
      if (use.is_on) continue;
      for (const RandomUse::Bypass& bypass : use.bypasses) {
        if (!(node.outputs[0] == bypass.value)) continue;
        rewrite.scope_of(id);
        rewrite.replace(bypass.value, g.add_node("Identity", {rewrite.mapped(bypass.instead)}));
        return true;
      }
      if (!use.bypasses.empty() || !(node.outputs[0] == use.drawn)) continue;
      const TensorType& type = graph.type(use.drawn);
      rewrite.scope_of(id);
      rewrite.replace(
          use.drawn,
          g.expand(g.filled(use.mean, {type.dtype, Shape(type.shape.size(), 1)}), type.shape));
      return true;
    }
    return false;
  };
  return remove_dead(rewrite(graph, operators, visit), operators);
}

}  // namespace tandem
