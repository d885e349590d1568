// Groups of nodes that share one activation layout, and the layouts of states.
#include <algorithm>
#include <list>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "engine/lower/kernel_choice.h"
#include "engine/lower/layout_plan.h"

namespace tandem {
namespace {

// An operator, and which of its operands belong to its group.
struct SpatialOperator {
  const char* name;
  std::vector<std::size_t> inputs, outputs;
  bool convolution = false;
};

const std::vector<SpatialOperator>& spatial_operators() {
  static const std::vector<SpatialOperator> list{
      {"Conv", {0}, {0}, true},
      {"ConvFused", {0, 3}, {0}, true},
      {"ConvGradInput", {0}, {0}, true},
      {"ConvGradWeight", {0, 1}, {}, true},
      {"MaxPool", {0}, {0, 1}},
      {"MaxPoolGrad", {0, 1, 2}, {0}},
      {"AveragePool", {0}, {0}},
      {"AveragePoolGrad", {0}, {0}},
      {"BatchNormalization", {0}, {0}},
      {"BatchNormalizationTraining", {0}, {0}},
      {"BatchNormalizationGrad", {0, 1}, {0}},
      {"Dropout", {0}, {0, 1}},
      {"DropoutGrad", {0, 1}, {0}},
      {"Pad", {0}, {0}},
      {"PadGrad", {0}, {0}},
      {"Resize", {0}, {0}},
      {"ResizeGrad", {0}, {0}},
      {"Slice", {0}, {0}},
  };
  return list;
}

const SpatialOperator* spatial(const Node& node) {
  for (const SpatialOperator& op : spatial_operators()) {
    if (node.op->name == op.name) return &op;
  }
  return nullptr;
}

class Groups {
 public:
  explicit Groups(const Graph& graph) : graph_(graph), parent_(graph.values.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int root(int v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }

  void add(const Node& node) {
    std::vector<ValueId> operands;
    if (const SpatialOperator* op = spatial(node)) {
      for (std::size_t i : op->inputs) take(node.inputs, i, operands);
      for (std::size_t i : op->outputs) take(node.outputs, i, operands);
    } else if (node.op->is_elementwise()) {
      std::vector<ValueId> all(node.inputs);
      all.insert(all.end(), node.outputs.begin(), node.outputs.end());
      std::int64_t most = 0;
      for (ValueId id : all) {
        if (id) most = std::max(most, graph_.type(id).elements());
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i] && graph_.type(all[i]).elements() == most) take(all, i, operands);
      }
    } else if (node.op->role == Role::concatenation) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) take(node.inputs, i, operands);
      take(node.outputs, 0, operands);
    }
    for (std::size_t i = 1; i < operands.size(); ++i) {
      parent_[root(operands[i].index)] = root(operands[0].index);
    }
  }

 private:
  void take(const std::vector<ValueId>& list, std::size_t i, std::vector<ValueId>& operands) const {
    if (i >= list.size() || !list[i]) return;
    const Value& value = graph_.value(list[i]);
    if (value.type.rank() < 3) return;
    if (value.kind == ValueKind::state || value.kind == ValueKind::constant) return;
    operands.push_back(list[i]);
  }

  const Graph& graph_;
  std::vector<int> parent_;
};

// A request with the operands in the layouts of their groups; states and the rest are row-major.
KernelRequest group_request(const PlacedGraph& placed, NodeId id, const LowerContext& context,
                            const std::vector<char>& channels_last) {
  const Graph& graph = placed.graph;
  const Node& node = graph.node(id);
  auto layout = [&](ValueId value) {
    if (!value) return Layout{};
    const Shape& shape = graph.type(value).shape;
    return channels_last[value.index] ? tandem::channels_last(shape) : row_major(shape);
  };
  std::vector<Layout> inputs, outputs;
  for (ValueId value : node.inputs) inputs.push_back(layout(value));
  for (ValueId value : node.outputs) outputs.push_back(layout(value));
  return make_request(graph, id, inputs, outputs, std::vector<bool>(outputs.size(), true),
                      *context.devices[placed.nodes[id.index].device],
                      context.options.deterministic);
}

// The strided layout that a constraint fixes, or nothing where it leaves a choice.
std::optional<Layout> fixed_by(const LayoutConstraint& constraint, const Shape& shape) {
  switch (constraint.kind) {
    case LayoutConstraint::Kind::row_major:
      return row_major(shape);
    case LayoutConstraint::Kind::channels_last:
      return shape.size() >= 3 ? channels_last(shape) : row_major(shape);
    case LayoutConstraint::Kind::exact:
      if (constraint.layout.is_strided()) return constraint.layout;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Answers whether the update that overwrites a state takes it in a layout. An update of many states
// is asked for a proposal once for each shape and layout of these, not once for each state.
class UpdateLayouts {
 public:
  UpdateLayouts(const PlacedGraph& placed, const LowerContext& context)
      : placed_(placed), context_(context) {}

  bool take(const State& state, const Layout& layout) {
    if (state.final == state.initial) return true;
    const Graph& graph = placed_.graph;
    const NodeId id = graph.value(state.final).producer;
    const Node& node = graph.node(id);
    if (node.op->role == Role::transfer) return true;
    if (node.op->role == Role::collective) return false;  // row-major, in the order of the ranks
    const Shape& shape = graph.type(state.initial).shape;
    const std::optional<FirstProposal>& first = proposal(id, shape, layout);
    if (!first) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == state.initial &&
          !satisfies(constraint_of(first->proposal.inputs, i), layout, shape)) {
        return false;
      }
    }
    return satisfies(constraint_of(first->proposal.outputs, graph.value(state.final).output_index),
                     layout, shape);
  }

 private:
  struct Asked {
    Shape shape;
    Layout layout;
    std::optional<FirstProposal> first;
  };

  // Operands of this shape have the layout, the others are row-major.
  const std::optional<FirstProposal>& proposal(NodeId id, const Shape& shape,
                                               const Layout& layout) {
    std::list<Asked>& asked = asked_[id.index];
    for (const Asked& known : asked) {
      if (known.shape == shape && known.layout == layout) return known.first;
    }
    const Graph& graph = placed_.graph;
    const Node& node = graph.node(id);
    std::vector<Layout> inputs, outputs;
    auto like = [&](ValueId value) {
      if (!value) return Layout{};
      return graph.type(value).shape == shape ? layout : row_major(graph.type(value).shape);
    };
    for (ValueId value : node.inputs) inputs.push_back(like(value));
    for (ValueId value : node.outputs) outputs.push_back(like(value));
    const Device& device = *context_.devices[placed_.nodes[id.index].device];
    const KernelRequest request =
        make_request(graph, id, inputs, outputs, std::vector<bool>(outputs.size(), true), device,
                     context_.options.deterministic);
    asked.push_back({shape, layout, first_proposal(request, device)});
    return asked.back().first;
  }

  const PlacedGraph& placed_;
  const LowerContext& context_;
  std::unordered_map<std::int32_t, std::list<Asked>> asked_;  // by node
};

}  // namespace

namespace {

// The layout that the costliest consumer of a state prefers, also seen through transfers and, for a
// master, through its mirror on another device.
std::optional<Layout> wished_layout(const PlacedGraph& placed, const LowerContext& context,
                                    const std::vector<char>& channels_last,
                                    const std::vector<std::vector<NodeId>>& readers,
                                    std::size_t state) {
  const Graph& graph = placed.graph;
  const Shape& shape = graph.type(graph.states[state].initial).shape;
  std::vector<ValueId> seen{graph.states[state].initial};
  for (const State& mirror : graph.states) {
    if (mirror.derived.is_of<Mirror>(graph.states[state].name)) seen.push_back(mirror.initial);
  }
  double most = -1;
  std::optional<Layout> wished;
  for (std::size_t v = 0; v < seen.size(); ++v) {
    const ValueId value = seen[v];
    for (NodeId id : readers[value.index]) {
      const Node& node = graph.node(id);
      if (is_view(node) || node.phase == Phase::update) continue;
      if (node.op->role == Role::transfer) {
        seen.push_back(node.outputs[0]);
        continue;
      }
      const double flops = cost_of(graph, node).flops;
      if (flops <= most) continue;
      const auto first = first_proposal(group_request(placed, id, context, channels_last),
                                        *context.devices[placed.nodes[id.index].device]);
      if (!first) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!(node.inputs[i] == value)) continue;
        if (const auto layout = fixed_by(constraint_of(first->proposal.inputs, i), shape)) {
          wished = layout;
          most = flops;
        }
      }
    }
  }
  return wished;
}

}  // namespace

std::vector<char> channels_last_groups(const PlacedGraph& placed, const LowerContext& context) {
  const Graph& graph = placed.graph;
  Groups groups(graph);
  for (const Node& node : graph.nodes) groups.add(node);

  std::vector<double> votes(graph.values.size(),
                            0);  // per root: flops for channels-last, less others
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const SpatialOperator* op = spatial(node);
    if (op == nullptr || !op->convolution) continue;
    const Device& device = *context.devices[placed.nodes[n].device];
    const NodeId id{static_cast<std::int32_t>(n)};
    const auto first =
        first_proposal(plain_request(graph, id, device, context.options.deterministic), device);
    if (!first) continue;
    const ValueId x = node.inputs[op->inputs.back() == 1 ? 1 : 0];
    const std::size_t operand = op->inputs.back() == 1 ? 1 : 0;
    const LayoutConstraint constraint = constraint_of(first->proposal.inputs, operand);
    const double flops = cost_of(graph, node).flops;
    if (constraint.kind == LayoutConstraint::Kind::channels_last)
      votes[groups.root(x.index)] += flops;
    if (constraint.kind == LayoutConstraint::Kind::row_major) votes[groups.root(x.index)] -= flops;
  }

  std::vector<char> result(graph.values.size(), 0);
  for (std::size_t v = 0; v < result.size(); ++v) {
    result[v] = graph.values[v].type.rank() >= 3 && votes[groups.root(static_cast<int>(v))] > 0;
  }
  return result;
}

std::vector<Layout> state_layouts(const PlacedGraph& placed, const LowerContext& context,
                                  const std::vector<char>& channels_last) {
  const Graph& graph = placed.graph;
  const auto readers = readers_of(graph);
  UpdateLayouts updates(placed, context);
  std::vector<Layout> layouts(graph.states.size());
  std::vector<char> fixed(graph.states.size(), 0);
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    const State& state = graph.states[s];
    const Shape& shape = graph.type(state.initial).shape;
    layouts[s] = row_major(shape);
    for (const auto& [name, layout] : context.options.fixed_layouts) {
      if (name != state.name) continue;
      layouts[s] = layout;
      fixed[s] = 1;
    }
    if (fixed[s] || state.kind != StateKind::parameter) continue;
    const std::optional<Layout> wished = wished_layout(placed, context, channels_last, readers, s);
    if (wished && updates.take(state, *wished)) layouts[s] = *wished;
  }
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t s = 0; s < graph.states.size(); ++s) by_name.emplace(graph.states[s].name, s);
  for (std::size_t s = 0; s < graph.states.size(); ++s) {  // a mirror has its master's layout
    const auto* mirror = graph.states[s].derived.as<Mirror>();
    if (fixed[s] || mirror == nullptr) continue;
    if (const auto of = by_name.find(mirror->of); of != by_name.end())
      layouts[s] = layouts[of->second];
  }
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    const State& state = graph.states[s];
    if (fixed[s] || state.parameter.empty()) continue;
    const auto of = by_name.find(state.parameter);
    if (of != by_name.end() &&
        graph.type(graph.states[of->second].initial).shape == graph.type(state.initial).shape)
      layouts[s] = layouts[of->second];
  }
  return layouts;
}

}  // namespace tandem
