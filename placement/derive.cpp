#include "placement/derive.h"

#include <algorithm>

#include "engine/operators/operator.h"
#include "engine/operators/scalar_functions.h"
#include "engine/optimizers/composed.h"
#include "engine/passes/tables/cached_tables.h"

namespace tandem {

ForwardPlacement forward_placement(const ResolvedPolicy& resolved) {
  ForwardPlacement result;
  for (const OperatorAttributes& op : resolved.operators) {
    PlacedNode node{op.run.value, op.run.reason.text, op.acts.value, op.lookahead.value};
    if (op.added && op.run.reason.layer == Layer::builtin) {
      if (op.acts.reason.rule < 0) continue;
      node.device = -1;
    }
    result.nodes.emplace(op.path, std::move(node));
  }
  for (const ParameterAttributes& p : resolved.parameters) {
    std::string reason = p.param.reason.text;
    if (!p.state.reason.follows) reason = "param " + reason + ", state " + p.state.reason.text;
    PlacedState state{p.state.value, p.param.value, std::move(reason), p.lookahead.value,
                      p.ship.value};
    if (p.fetches_ahead()) state.rows_ahead = 1;  // more than one step is not looked ahead yet
    result.parameters.emplace(p.name, std::move(state));
    if (!p.cached.rows) continue;
    const int device = p.cached.device;
    reason = "cache " + p.cache.reason.text;
    for (const std::string& reader : p.readers) {
      const OperatorAttributes& lookup = *resolved.find_node(reader);
      result.nodes.emplace(cached_name(reader),
                           PlacedNode{device, reason, lookup.acts.value, lookup.lookahead.value});
    }
    result.parameters.emplace(cached_name(p.name), PlacedState{device, device, reason});
  }
  return result;
}

namespace {

template <class T>
const T* find(const std::map<std::string, T>& decided, const std::string& key) {
  const auto found = decided.find(key);
  return found == decided.end() ? nullptr : &found->second;
}

class Derivation {
 public:
  Derivation(const Graph& graph, const ResolvedPolicy& resolved)
      : graph_(graph), forward_(forward_placement(resolved)), readers_(readers_of(graph)) {
    for (const ResolvedDevice& device : resolved.devices) placement_.devices.push_back(device.name);
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      const State& state = graph.states[s];
      if (state.kind == StateKind::parameter) {
        homes_.emplace(composed_path(state.name), s);
        if (state.derived.is<CachedRows>()) homes_.emplace("optimizer." + state.name, s);
      }
      if (state.final == state.initial) continue;
      written_.emplace(graph.value(state.final).producer.index, s);
    }
  }

  Placement run() {
    placement_.nodes.resize(graph_.nodes.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      placement_.nodes[n] = node.phase == Phase::update ? of_update(n) : of_derived(node);
      if (is_gradient_sum(node)) sum_at_operands(node, placement_.nodes[n]);
    }
    for (const State& state : graph_.states) placement_.states.push_back(of_state(state));
    return std::move(placement_);
  }

 private:
  const PlacedNode& placed(NodeId id) const { return placement_.nodes[id.index]; }

  PlacedNode of_derived(const Node& node) const {
    const PlacedNode* open = find(forward_.nodes, node.path);  // known, perhaps without a device
    if (open && open->device >= 0) return *open;
    for (const std::string& origin : node.origins) {
      const PlacedNode* own = find(forward_.nodes, origin);
      if (own && own->device >= 0) return *own;
      if (own && !open) open = own;
    }
    PlacedNode result = follow(node);
    if (open) {
      result.acts = open->acts;
      result.lookahead = open->lookahead;
    }
    return result;
  }

  bool is_gradient_sum(const Node& node) const {
    if (node.phase != Phase::backward || node.op->scalar != ScalarFunction::add) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return graph_.value(input).producer && graph_.type(input) == graph_.type(node.outputs[0]);
    });
  }

  // Sums a gradient where its terms are computed: one value crosses from there, not two.
  void sum_at_operands(const Node& node, PlacedNode& to) const {
    const PlacedNode& first = placed(graph_.value(node.inputs[0]).producer);
    for (ValueId input : node.inputs) {
      if (placed(graph_.value(input).producer).device != first.device) return;
    }
    if (to.device == first.device) return;
    to.device = first.device;
    to.reason = "summed where it is computed";
  }

  // Follows the first operand that a node makes; the cpu where there is none.
  PlacedNode follow(const Node& node) const {
    for (ValueId input : node.inputs) {
      const NodeId producer = input ? graph_.value(input).producer : NodeId{};
      if (producer) return {placed(producer).device, "follows " + graph_.node(producer).path};
    }
    if (node.phase == Phase::backward) {  // gradients start where the loss is
      const NamedValue* loss = graph_.find_output("loss");
      const NodeId producer = loss ? graph_.value(loss->value).producer : NodeId{};
      if (producer) return {placed(producer).device, "follows " + graph_.node(producer).path};
    }
    return {0, "default"};
  }

  PlacedNode of_update(std::size_t n) const {
    const Node& node = graph_.nodes[n];
    const auto [first, last] = written_.equal_range(static_cast<std::int32_t>(n));
    for (auto it = first; it != last; ++it) {
      const State& state = graph_.states[it->second];
      if (state.kind != StateKind::parameter) continue;
      const PlacedState home = of_parameter(state);
      return {home.state, home.reason};
    }
    // A part of a sharded parameter is where its optimizer states are, and so is what reads the
    // parameter for it.
    for (auto it = first; it != last; ++it) {
      const State& state = graph_.states[it->second];
      if (state.shard && state.shard->kind == ShardKind::elements) {
        const PlacedState home = of_parameter(*graph_.find_state(state.parameter));
        return {home.state, home.reason};
      }
    }
    if (const State* parameter = read_first(node)) {
      const PlacedState home = of_parameter(*parameter);
      return {home.state, home.reason};
    }
    // What backward reads and an update writes, such as the loss scale, lives where it is read.
    for (auto it = first; it != last; ++it) {
      for (NodeId reader : readers_[graph_.states[it->second].initial.index]) {
        if (graph_.node(reader).phase != Phase::backward) continue;
        return {placed(reader).device, "follows " + graph_.node(reader).path};
      }
    }
    // The ids of a cache cross once, and are grouped where it is. The operators that make a step
    // are where the parameter's states are.
    if (const auto found = homes_.find(node.path); found != homes_.end()) {
      const PlacedState home = of_parameter(graph_.states[found->second]);
      return {home.state, home.reason};
    }
    PlacedNode result = follow(node);
    for (ValueId input : node.inputs) {
      const NodeId producer = input ? graph_.value(input).producer : NodeId{};
      if (producer && placed(producer).device != result.device)
        return {0, "reads from several devices"};
    }
    return result;
  }

  /// The parameter whose value is the node's first operand; null where that is none.
  const State* read_first(const Node& node) const {
    if (node.inputs.empty() || !node.inputs[0]) return nullptr;
    for (const State& state : graph_.states) {
      if (state.kind == StateKind::parameter && state.initial == node.inputs[0]) return &state;
    }
    return nullptr;
  }

  PlacedState of_parameter(const State& state) const {
    // A parameter has the same place in every program, also in one that does not update it.
    if (const PlacedState* own = find(forward_.parameters, state.name)) return *own;
    for (NodeId reader : readers_[state.initial.index]) {
      const Node& node = graph_.node(reader);
      if (node.phase == Phase::update) continue;
      const PlacedNode at = of_derived(node);
      return {at.device, at.device, "follows " + node.path};
    }
    return {0, 0, "default"};
  }

  PlacedState of_state(const State& state) const {
    if (state.kind == StateKind::parameter) return of_parameter(state);
    NodeId by = graph_.value(state.final).producer;
    if (!by && !readers_[state.initial.index].empty()) by = readers_[state.initial.index][0];
    if (!by) return {0, 0, "default"};
    return {placed(by).device, placed(by).device, "follows " + graph_.node(by).path};
  }

  const Graph& graph_;
  const ForwardPlacement forward_;
  std::vector<std::vector<NodeId>> readers_;
  std::multimap<std::int32_t, std::size_t> written_;  // node -> the states that it writes
  std::map<std::string, std::size_t> homes_;  // path of an update's operators -> the parameter
  Placement placement_;
};

}  // namespace

Placement derive_placement(const Graph& graph, const ResolvedPolicy& resolved) {
  return Derivation(graph, resolved).run();
}

}  // namespace tandem
