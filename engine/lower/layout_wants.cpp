// The reverse walk: which layout each value's consumers prefer, seen back through views.
#include <algorithm>
#include <cassert>

#include "engine/lower/kernel_choice.h"
#include "engine/lower/layout_plan.h"

namespace tandem {
namespace {

// Without channels_last every map is wanted row-major, to show what the choice of layouts gains.
bool uses_channels_last(const LowerOptions& options) {
  const auto& off = options.disabled_passes;
  return std::find(off.begin(), off.end(), "channels_last") == off.end();
}

class WantWalk {
 public:
  WantWalk(const PlacedGraph& placed, const LowerContext& context, LayoutPlan& plan)
      : placed_(placed),
        graph_(placed.graph),
        context_(context),
        plan_(plan),
        readers_(readers_of(graph_)),
        kept_(graph_.values.size(), 0) {
    for (const NamedValue& output : graph_.outputs) kept_[output.value.index] = 1;
    for (const State& state : graph_.states) kept_[state.final.index] = 1;
  }

  void run() {
    plan_.wants.assign(graph_.values.size(), std::nullopt);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const Shape& shape = graph_.values[v].type.shape;
      if (plan_.channels_last[v]) {
        plan_.wants[v] = Want{channels_last(shape), {}};
      } else if (!uses_channels_last(context_.options) && shape.size() >= 3) {
        plan_.wants[v] = Want{row_major(shape), {}};
      }
    }
    for (const NamedValue& output : graph_.outputs) {
      if (!plan_.channels_last[output.value.index]) {
        plan_.wants[output.value.index] = Want{row_major(graph_.type(output.value).shape), {}};
      }
    }
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      if (is_view(node)) {
        through_view(node);
      } else if (node.op->role == Role::transfer) {
        through_transfer(node);
      } else if (node.op->role == Role::collective) {
        for (ValueId input : node.inputs) constraint(input, row_major(graph_.type(input).shape));
      } else if (node.op->role == Role::concatenation) {
        through_concat(node);
      } else {
        of_kernel(NodeId{static_cast<std::int32_t>(n)});
      }
    }
  }

 private:
  // Row-major wins among several wants; a place inside another buffer is only for a single reader.
  void constraint(ValueId value, const Layout& layout, ValueId storage = {}) {
    if (!value || graph_.value(value).kind != ValueKind::computed) return;
    const Shape& shape = graph_.type(value).shape;
    if (plan_.channels_last[value.index] && !storage) return;
    std::optional<Want>& want = plan_.wants[value.index];
    if (storage && may_lie_in(value)) {
      want = Want{layout, storage};
      return;
    }
    if (storage) return;
    if (!want || (!want->storage && is_row_major(layout, shape))) {
      want = Want{layout, {}};
      want->layout.offset = 0;
    }
  }

  bool may_lie_in(ValueId value) const {
    if (kept_[value.index] || readers_[value.index].size() != 1) return false;
    const Node& reader = graph_.node(readers_[value.index][0]);
    return std::count(reader.inputs.begin(), reader.inputs.end(), value) == 1 &&
           graph_.type(value).elements() > 0;
  }

  void through_view(const Node& node) {
    const ValueId x = node.inputs[0], y = node.outputs[0];
    const std::optional<Want>& want = plan_.wants[y.index];
    const Shape& x_shape = graph_.type(x).shape;
    if (node.op->role == Role::transpose) {
      if (!want) return;
      const Ints& perm = node.attributes.integers("perm");
      Layout layout = want->layout;
      if (!layout.is_strided()) return;
      for (std::size_t i = 0; i < perm.size(); ++i)
        layout.strides[perm[i]] = want->layout.strides[i];
      constraint(x, layout, want->storage);
    } else if (node.op->role == Role::reshape) {
      const std::optional<Layout> layout = want ? reshaped(want->layout, y, x_shape) : std::nullopt;
      if (layout) {
        constraint(x, *layout, want->storage);
      } else {
        constraint(x, row_major(x_shape));
      }
    }
  }

  // A transfer moves bytes as they are, so its operand needs the layout of its result.
  void through_transfer(const Node& node) {
    if (node.inputs[1]) {
      const int state = plan_.state_of[node.inputs[1].index];
      if (state >= 0) constraint(node.inputs[0], plan_.states[state]);
      return;
    }
    const std::optional<Want>& want = plan_.wants[node.outputs[0].index];
    const Shape& shape = graph_.type(node.inputs[0]).shape;
    const bool dense = want && satisfies({LayoutConstraint::Kind::dense, {}}, want->layout, shape);
    constraint(node.inputs[0], dense ? want->layout : row_major(shape));
  }

  // The layout of y seen as `shape`.
  std::optional<Layout> reshaped(const Layout& layout, ValueId y, const Shape& shape) const {
    Node node;
    node.op = &context_.operators.get("Reshape");
    node.attributes.set("shape", shape);
    node.inputs = {y};
    return node.op->view(NodeView{graph_, node}, layout);
  }

  void through_concat(const Node& node) {
    const ValueId y = node.outputs[0];
    const std::optional<Want>& want = plan_.wants[y.index];
    const Layout layout = want ? want->layout : row_major(graph_.type(y).shape);
    const ValueId root = want && want->storage ? want->storage : y;
    if (kept_[y.index]) return;
    plan_.wants[y.index] = Want{layout, root == y ? ValueId{} : root};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      constraint(node.inputs[i], concat_slice(graph_, node, i, layout), root);
    }
  }

  void of_kernel(NodeId id) {
    const Node& node = graph_.node(id);
    const Device& device = *context_.devices[placed_.nodes[id.index].device];
    std::vector<Layout> inputs, outputs;
    auto expected = [&](ValueId value) {
      if (!value) return Layout{};
      if (plan_.wants[value.index]) return plan_.wants[value.index]->layout;
      const int state = plan_.state_of[value.index];
      return state >= 0 ? plan_.states[state] : row_major(graph_.type(value).shape);
    };
    for (ValueId value : node.inputs) inputs.push_back(expected(value));
    for (ValueId value : node.outputs) outputs.push_back(expected(value));
    const auto first = first_proposal(
        make_request(graph_, id, inputs, outputs, std::vector<bool>(outputs.size(), true), device,
                     context_.options.deterministic),
        device);
    if (!first) return;
    Layout last_state;  // the layout of the last state among the inputs so far
    Shape last_shape;
    const std::vector<int> overwritten = overwritten_inputs(node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!input) continue;
      const Shape& shape = graph_.type(input).shape;
      const bool aliased = std::find(overwritten.begin(), overwritten.end(), static_cast<int>(i)) !=
                           overwritten.end();
      if (aliased && plan_.state_of[input.index] >= 0) {
        last_state = plan_.states[plan_.state_of[input.index]];
        last_shape = shape;
        continue;
      }
      const LayoutConstraint wished = constraint_of(first->proposal.inputs, i);
      // A kernel that takes any layout names the one that was offered: that is no preference.
      if (wished.kind == LayoutConstraint::Kind::exact &&
          same_places(wished.layout, inputs[i], shape)) {
        continue;
      }
      switch (wished.kind) {
        case LayoutConstraint::Kind::row_major:
          constraint(input, row_major(shape));
          break;
        case LayoutConstraint::Kind::channels_last:
          constraint(input, channels_last(shape));
          break;
        case LayoutConstraint::Kind::exact:
          constraint(input, wished.layout);
          break;
        case LayoutConstraint::Kind::dense:
          // A gradient is wanted in the layout of the state that it updates.
          if (!last_state.strides.empty() && last_shape == shape) constraint(input, last_state);
          break;
        default:
          break;
      }
    }
  }

  const PlacedGraph& placed_;
  const Graph& graph_;
  const LowerContext& context_;
  LayoutPlan& plan_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> kept_;
};

}  // namespace

Layout concat_slice(const Graph& graph, const Node& concat, std::size_t input, const Layout& y) {
  assert(y.is_strided());
  const auto axis = static_cast<std::size_t>(concat.attributes.integer("axis"));
  Layout layout = y;
  for (std::size_t i = 0; i < input; ++i) {
    layout.offset += graph.type(concat.inputs[i]).shape[axis] * y.strides[axis];
  }
  return layout;
}

LayoutPlan plan_layouts(const PlacedGraph& placed, const LowerContext& context) {
  LayoutPlan plan;
  plan.channels_last = uses_channels_last(context.options)
                           ? channels_last_groups(placed, context)
                           : std::vector<char>(placed.graph.values.size(), 0);
  plan.states = state_layouts(placed, context, plan.channels_last);
  plan.state_of.assign(placed.graph.values.size(), -1);
  for (std::size_t s = 0; s < placed.graph.states.size(); ++s) {
    plan.state_of[placed.graph.states[s].initial.index] = static_cast<int>(s);
  }
  WantWalk(placed, context, plan).run();
  return plan;
}

}  // namespace tandem
