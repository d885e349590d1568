// The forward walk: every value gets its layout and its buffer, every node its kernel; views cost
// nothing, and copies are made only where a consumer cannot take a value as it is.
#include <cassert>
#include <map>
#include <set>

#include "engine/graph/error.h"
#include "engine/lower/kernel_choice.h"
#include "engine/lower/reorder_note.h"
#include "engine/lower/select_kernel.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

class LayoutWalk {
 public:
  LayoutWalk(const PlacedGraph& placed, const LowerContext& context)
      : placed_(placed),
        graph_(placed.graph),
        context_(context),
        plan_(plan_layouts(placed, context)),
        readers_(readers_of(graph_)),
        kept_(graph_.values.size(), 0),
        map_(graph_.values.size()) {
    for (const NamedValue& output : graph_.outputs) kept_[output.value.index] = 1;
    for (const State& state : graph_.states) kept_[state.final.index] = 1;
  }

  Lowered run() {
    to_.devices = context_.devices;
    device_ = 0;  // inputs are fed on the host
    for (const NamedValue& input : graph_.inputs)
      to_.graph.inputs.push_back({input.name, mapped(input.value)});
    for (std::size_t s = 0; s < graph_.states.size(); ++s) {
      to_.states.push_back({placed_.states[s].state, plan_.states[s]});
      device_ = placed_.states[s].state;
      mapped(graph_.states[s].initial);
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      const Node& node = graph_.node(id);
      device_ = placed_.nodes[n].device;
      if (is_view(node)) {
        lower_view(id);
      } else if (node.op->role == Role::transfer) {
        lower_transfer(id);
      } else if (node.op->role == Role::collective) {
        lower_collective(id);
      } else if (node.op->role != Role::concatenation || !lower_concat(id)) {
        lower_kernel(id);
      }
    }
    for (const NamedValue& output : graph_.outputs) {
      to_.graph.outputs.push_back({output.name, plain(mapped(output.value), output.name)});
    }
    for (State state : graph_.states) {
      state.initial = mapped(state.initial);
      state.final = mapped(state.final);
      to_.graph.states.push_back(std::move(state));
    }
    note_reference_kernels();
    return std::move(to_);
  }

 private:
  const Shape& shape_of(ValueId old) const { return graph_.type(old).shape; }
  LoweredValue& at(ValueId id) { return to_.values[id.index]; }

  // The new value; made on first use with a row-major buffer of its own on the current device.
  ValueId mapped(ValueId old) {
    if (!old) return {};
    if (map_[old.index]) return map_[old.index];
    Value value = graph_.value(old);
    value.producer = {};
    const int state = plan_.state_of[old.index];
    Layout layout = state >= 0 ? plan_.states[state] : row_major(value.type.shape);
    return map_[old.index] = add_value(std::move(value), std::move(layout));
  }

  ValueId add_value(Value value, Layout layout) {
    const ValueId id{static_cast<std::int32_t>(to_.graph.values.size())};
    to_.graph.values.push_back(std::move(value));
    to_.values.push_back({id, std::move(layout), device_});
    return id;
  }

  NodeId add_node(Node node, LoweredNode lowered) {
    const NodeId id{static_cast<std::int32_t>(to_.graph.nodes.size())};
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Value& value = to_.graph.value(node.outputs[i]);
      value.producer = id;
      value.output_index = static_cast<std::int32_t>(i);
    }
    lowered.in_place.resize(node.outputs.size(), -1);
    to_.graph.nodes.push_back(std::move(node));
    to_.nodes.push_back(std::move(lowered));
    return id;
  }

  Node mapped_node(const Node& node) {
    Node result = node;
    for (ValueId& input : result.inputs) input = mapped(input);
    for (ValueId& output : result.outputs) output = mapped(output);
    return result;
  }

  // A copy of x in another layout, made once for all readers; constants are copied before the run.
  ValueId copied(ValueId x, const Layout& layout, const Node& like) {
    ValueId& y = copies_[{x.index, to_string(layout)}];
    if (y) return y;
    if (to_.graph.value(x).kind == ValueKind::constant) {
      Value value = to_.graph.value(x);
      value.name += "/copy" + std::to_string(++copy_count_);
      device_ = at(x).device;
      return y = add_value(std::move(value), layout);
    }
    return y = add_copy(x, layout, like);
  }

  // A Copy node; `like` gives path, phase and origins.
  ValueId add_copy(ValueId x, const Layout& layout, const Node& like, ValueId storage = {}) {
    Value value = to_.graph.value(x);
    // What training adds around updates (sums over ranks, parts of parameters) copies by design;
    // a gradient that an update wants in another layout is worth a note.
    const NodeId made_by = value.producer;
    const bool is_of_update =
        like.phase == Phase::update && (!made_by || to_.graph.node(made_by).phase == Phase::update);
    if (!is_of_update)
      to_.notes.push_back(std::string(reorder_note) + value.name + "' to " + to_string(layout) +
                          " for " + like.path);
    value.name += "/copy" + std::to_string(++copy_count_);
    value.kind = ValueKind::computed;
    value.constant = nullptr;
    device_ = at(x).device;
    const ValueId y = add_value(std::move(value), layout);
    if (storage) at(y).storage = storage;
    Node node;
    node.op = &context_.operators.get("Copy");
    node.inputs = {x};
    node.outputs = {y};
    node.path = like.path;
    node.phase = like.phase;
    node.origins = like.origins;
    const int device = at(x).device;
    const NodeId id = add_node(std::move(node), {device, nullptr, {}, {}});
    to_.nodes[id.index].kernel = copy_kernel(id, *context_.devices[device]);
    return y;
  }

  const Kernel* copy_kernel(NodeId id, const Device& device) {
    const Node& node = to_.graph.node(id);
    const KernelRequest request =
        make_request(to_.graph, id, {at(node.inputs[0]).layout}, {at(node.outputs[0]).layout},
                     {true}, device, context_.options.deterministic);
    const Shape& shape = to_.graph.type(node.inputs[0]).shape;
    for (const Kernel& kernel : device.kernels()) {
      if (kernel.op != "Copy" || (kernel.refuse && kernel.refuse(request))) continue;
      for (const Proposal& proposal : kernel.propose(request)) {
        if (satisfies(constraint_of(proposal.inputs, 0), request.inputs[0].layout, shape) &&
            satisfies(constraint_of(proposal.outputs, 0), request.outputs[0].layout, shape)) {
          return &kernel;
        }
      }
    }
    throw Error(ErrorKind::usage, Diagnostic{.message = "no kernel of device " + device.name() +
                                                        " copies between these layouts",
                                             .path = node.path,
                                             .expected = to_string(at(node.outputs[0]).layout),
                                             .got = to_string(at(node.inputs[0]).layout)});
  }

  void lower_view(NodeId id) {
    const Node& old = graph_.node(id);
    Node node = mapped_node(old);
    const NodeView view{graph_, old};
    std::optional<Layout> layout = old.op->view(view, at(node.inputs[0]).layout);
    if (!layout) {
      node.inputs[0] = copied(node.inputs[0], row_major(shape_of(old.inputs[0])), old);
      layout = old.op->view(view, at(node.inputs[0]).layout);
      assert(layout && "a row-major tensor can be seen in any view");
    }
    LoweredValue& y = at(node.outputs[0]);
    y.layout = std::move(*layout);
    y.storage = at(node.inputs[0]).storage;
    add_node(std::move(node), {placed_.nodes[id.index].device, nullptr, {}, {}});
  }

  // The bytes of x as they lie, from one memory to the other: x must be a block without holes.
  void lower_transfer(NodeId id) {
    const Node& old = graph_.node(id);
    Node node = mapped_node(old);
    const Shape& shape = shape_of(old.inputs[0]);
    const ValueId into = node.inputs[1];
    const Layout& own = at(node.inputs[0]).layout;
    const bool some_rows = node.inputs.size() > 2 && node.inputs[2];
    const bool fits = satisfies({LayoutConstraint::Kind::dense, {}}, own, shape) &&
                      (!into || same_block(own, at(into).layout, shape)) &&
                      (!some_rows || is_row_major(own, shape));
    if (!fits) {
      node.inputs[0] = copied(node.inputs[0], into ? at(into).layout : row_major(shape), old);
    }
    LoweredNode lowered{placed_.nodes[id.index].device, nullptr, {into ? 1 : -1}, {}};
    lowered.transfer = true;
    LoweredValue& y = at(node.outputs[0]);
    y.device = lowered.device;
    if (into) {
      y.layout = at(into).layout;
      y.storage = at(into).storage;
    } else {
      y.layout = at(node.inputs[0]).layout;
      y.layout.offset = 0;
    }
    add_node(std::move(node), std::move(lowered));
  }

  // Operands are dense blocks in row-major order, which all ranks have whatever kernels they chose.
  void lower_collective(NodeId id) {
    const Node& old = graph_.node(id);
    Node node = mapped_node(old);
    const std::size_t notes = to_.notes.size();
    LoweredNode lowered{placed_.nodes[id.index].device, nullptr, overwritten_inputs(old), {}};
    lowered.collective = true;
    const bool lies_beside =
        collective_kind(old) == CollectiveKind::all_reduce && node.inputs.size() > 1;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (lowered.in_place[i] < 0) continue;
      const ValueId state = node.inputs[static_cast<std::size_t>(lowered.in_place[i])];
      assert(is_row_major(at(state).layout, to_.graph.type(state).shape) &&
             overwrites_state(old.inputs[static_cast<std::size_t>(lowered.in_place[i])],
                              old.outputs[i]));
      at(node.outputs[i]).layout = at(state).layout;
      at(node.outputs[i]).storage = at(state).storage;
    }
    for (ValueId& input : node.inputs) {
      const Shape shape = to_.graph.type(input).shape;
      // Several sums lie side by side, where no state can be.
      const bool is_apart =
          lies_beside && to_.graph.value(at(input).storage).kind == ValueKind::state;
      if (is_apart || !is_row_major(at(input).layout, shape))
        input = copied(input, row_major(shape), old);
    }
    to_.notes.resize(notes);
    add_node(std::move(node), std::move(lowered));
  }

  static bool same_block(const Layout& x, Layout y, const Shape& shape) {
    y.offset = x.offset;
    return same_places(x, y, shape);
  }

  // Where some input already lies in the result, the others are copied next to it; else a kernel
  // runs.
  bool lower_concat(NodeId id) {
    const Node& old = graph_.node(id);
    const std::optional<Want>& want = plan_.wants[old.outputs[0].index];
    if (!want || kept_[old.outputs[0].index]) return false;
    const ValueId root = mapped(want->storage ? want->storage : old.outputs[0]);
    std::vector<Layout> slices;
    int written = 0;
    for (std::size_t i = 0; i < old.inputs.size(); ++i) {
      slices.push_back(concat_slice(graph_, old, i, want->layout));
      written += lies_in(mapped(old.inputs[i]), root, slices[i]);
    }
    if (written == 0) return false;
    Node node = mapped_node(old);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (shape_of(old.inputs[i]) == Shape{} || graph_.type(old.inputs[i]).elements() == 0)
        continue;
      if (!lies_in(node.inputs[i], root, slices[i])) {
        node.inputs[i] = add_copy(node.inputs[i], slices[i], old, root);
      }
    }
    at(node.outputs[0]).layout = want->layout;
    at(node.outputs[0]).storage = root;
    add_node(std::move(node), {placed_.nodes[id.index].device, nullptr, {}, {}});
    return true;
  }

  bool lies_in(ValueId x, ValueId root, const Layout& slice) {
    return at(x).storage == root && same_places(at(x).layout, slice, to_.graph.type(x).shape);
  }

  void lower_kernel(NodeId id) {
    const Node& old = graph_.node(id);
    Node node = mapped_node(old);
    NodeOperands operands;
    operands.overwritten = overwritten_inputs(old);
    for (std::size_t i = 0; i < old.outputs.size(); ++i) {
      const ValueId output = old.outputs[i];
      operands.read.push_back(!readers_[output.index].empty() || kept_[output.index]);
      operands.wants.push_back(plan_.wants[output.index]);
      const int input = operands.overwritten[i];
      if (input < 0) continue;
      if (!operands.read[i]) {
        operands.overwritten[i] = -1;
      } else if (!overwrites_state(old.inputs[input], output)) {
        // What is overwritten is still needed by others: the kernel gets a copy.
        node.inputs[input] =
            add_copy(node.inputs[input], row_major(shape_of(old.inputs[input])), old);
      }
    }
    for (ValueId input : node.inputs)
      operands.inputs.push_back(input ? at(input).layout : Layout{});
    operands.has_copy = [&](std::size_t i, const Layout& layout) {
      return copies_.count({node.inputs[i].index, to_string(layout)}) != 0;
    };
    KernelSelection selection = select_kernel(placed_, id, operands, context_);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (selection.input_copies[i])
        node.inputs[i] = copied(node.inputs[i], *selection.input_copies[i], old);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      LoweredValue& y = at(node.outputs[i]);
      y.layout = selection.outputs[i];
      const int input = operands.overwritten[i];
      if (input >= 0) {
        y.storage = at(node.inputs[input]).storage;
      } else if (selection.storages[i]) {
        const ValueId storage = mapped(selection.storages[i]);  // may move to_.values
        at(node.outputs[i]).storage = storage;
      } else {
        y.layout.offset = 0;
      }
    }
    add_node(std::move(node), {placed_.nodes[id.index].device, selection.kernel,
                               std::move(operands.overwritten), std::move(selection.refused)});
  }

  bool overwrites_state(ValueId input, ValueId output) const {
    const int state = plan_.state_of[input.index];
    return state >= 0 && graph_.states[state].final == output;
  }

  // A result as the host reads it: row-major, in a buffer that holds nothing else.
  ValueId plain(ValueId value, const std::string& name) {
    const LoweredValue& lowered = at(value);
    const Shape shape = to_.graph.type(value).shape;
    const Value& owner = to_.graph.value(lowered.storage);
    if (lowered.layout.offset == 0 && is_row_major(lowered.layout, shape) &&
        owner.type.bytes() == to_.graph.type(value).bytes() && owner.kind == ValueKind::computed &&
        span_elements(at(lowered.storage).layout, owner.type.shape) == owner.type.elements() &&
        output_buffers_.insert(lowered.storage.index).second) {
      return value;
    }
    Node like;
    like.path = name;
    const NodeId producer = to_.graph.value(value).producer;
    if (producer) like = to_.graph.node(producer);
    return add_copy(value, row_major(shape), like);
  }

  void note_reference_kernels() {
    std::map<std::string, std::pair<int, std::string>> slow;
    for (std::size_t n = 0; n < to_.nodes.size(); ++n) {
      if (to_.nodes[n].kernel == nullptr || !to_.nodes[n].kernel->reference) continue;
      auto& [count, path] = slow[to_.graph.nodes[n].op->name];
      if (count++ == 0) path = to_.graph.nodes[n].path;
    }
    for (const auto& [op, where] : slow) {
      to_.notes.push_back(std::to_string(where.first) + " " + op +
                          " on reference kernels, the first at " + where.second);
    }
  }

  const PlacedGraph& placed_;
  const Graph& graph_;
  const LowerContext& context_;
  LayoutPlan plan_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> kept_;
  std::vector<ValueId> map_;
  int device_ = 0;  // where new values lie
  std::map<std::pair<std::int32_t, std::string>, ValueId> copies_;
  int copy_count_ = 0;
  std::set<std::int32_t> output_buffers_;
  Lowered to_;
};

}  // namespace

Lowered assign_layouts(const PlacedGraph& placed, const LowerContext& context) {
  return LayoutWalk(placed, context).run();
}

}  // namespace tandem
