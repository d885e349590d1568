// 16-bit floats where a device is fast with them (Operator::precision): products compute in them,
// statistics and losses in float32, the rest in the type of its operands. Masters and moments stay
// float32; forward and backward read a weight of 16 bits, which the update itself writes where it
// can; else it is converted after the update.
#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <tuple>

#include "engine/lower/placed_graph.h"
#include "engine/operators/grouped_update.h"
#include "engine/operators/scalar_functions.h"
#include "engine/operators/tables/rows.h"

namespace tandem {
namespace {

class Narrowing {
 public:
  explicit Narrowing(PlacedEdit& edit)
      : edit_(edit), half_(edit.context().options.compute), count_(edit.graph().nodes.size()) {
    for (const Device* device : edit.context().devices)
      is_fast_.push_back(device->facts().has(name_of(half_)));
    find_stored();
  }

  void run() {
    if (std::none_of(is_fast_.begin(), is_fast_.end(), [](bool fast) { return fast; })) return;
    add_weights();
    for (std::size_t n = 0; n < count_; ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      if (edit_.graph().node(id).phase == Phase::update)
        widen_operands(id);
      else
        settle(id);
    }
    for (NamedValue& output : edit_.graph().outputs) {
      const NodeId producer = edit_.graph().value(output.value).producer;
      if (is_half(output.value))
        output.value = cast(output.value, DType::float32, host, producer ? producer : NodeId{0});
    }
  }

 private:
  DType dtype(ValueId value) const { return edit_.graph().type(value).dtype; }
  bool is_half(ValueId value) const { return dtype(value) == half_; }
  bool is_stored(ValueId value) const {
    return static_cast<std::size_t>(value.index) < stored_.size() && stored_[value.index];
  }
  // Marks split tables and their rows, up to the casts that widen them: they have 16 bits in any
  // case.
  void find_stored() {
    const Graph& graph = edit_.graph();
    stored_.assign(graph.values.size(), false);
    for (const State& state : graph.states) {
      const auto* low = state.derived.as<LowHalf>();
      if (low != nullptr) stored_[graph.find_state(low->of)->initial.index] = true;
    }
    for (const State& state : graph.states) {  // rows of a split table that were fetched ahead
      const auto* rows = state.derived.as<PrefetchedRows>();
      const State* table = rows == nullptr ? nullptr : graph.find_state(rows->of);
      if (table != nullptr && is_stored(table->initial) && dtype(state.initial) == DType::bfloat16)
        stored_[state.initial.index] = true;
    }
    for (const Node& node : graph.nodes) {
      if (node.op->scalar == ScalarFunction::cast || node.inputs.empty() || !node.inputs[0])
        continue;
      if (!is_stored(node.inputs[0]) || node.phase == Phase::update) continue;
      for (ValueId output : node.outputs) stored_[output.index] = dtype(output) == DType::bfloat16;
    }
  }
  // Whether input i may be given in either type.
  bool is_changeable(const Node& node, std::size_t i) const {
    const ValueId input = node.inputs[i];
    if (!input || (dtype(input) != DType::float32 && !is_half(input))) return false;
    if (is_stored(input)) return false;
    const std::vector<Port>& ports = node.op->inputs;
    return !(i < ports.size() ? ports[i] : ports.back()).statistic;
  }

  Precision constraint(NodeId id) const {
    const Node& node = edit_.graph().node(id);
    if (!is_fast_[edit_.device(id)]) return Precision::float32;
    const auto& keep = edit_.context().options.keep_float32;
    const bool kept = std::any_of(keep.begin(), keep.end(), [&](const Selector& selector) {
      return selector.matches(node.path) ||
             std::any_of(node.origins.begin(), node.origins.end(),
                         [&](const std::string& origin) { return selector.matches(origin); });
    });
    return kept ? Precision::float32 : node.op->precision;
  }

  // Whether forward reads nothing of a parameter in float32, not even through views.
  bool wants_half(ValueId value) const {
    bool read = false;
    for (NodeId reader : edit_.readers(value)) {
      const Node& node = edit_.graph().node(reader);
      if (node.phase != Phase::forward) continue;
      read = true;
      if (is_view(node) ? !wants_half(node.outputs[0]) : constraint(reader) == Precision::float32)
        return false;
    }
    return read;
  }

  void add_weights() {
    const std::vector<std::string>& without = edit_.context().options.without_weights;
    const std::size_t states = edit_.graph().states.size();
    for (std::size_t s = 0; s < states; ++s) {
      const State& state = edit_.graph().states[s];
      if (state.kind != StateKind::parameter || dtype(state.initial) != DType::float32) continue;
      if (std::find(without.begin(), without.end(), state.name) != without.end()) continue;
      if (!wants_half(state.initial)) continue;
      // After an update of some rows, the whole weight would have to be converted.
      const NodeId writer = edit_.graph().value(state.final).producer;
      if (writer && edit_.graph().node(writer).op->role == Role::rows_update) continue;
      add_weight(edit_, s, edit_.place(s).param, half_);
    }
  }

  // An update computes in float32. It reads gradients of 16 bits as they are, and so do norms; for
  // gradients of rows, only where the device has a kernel for that.
  void widen_operands(NodeId id) {
    const Operator& op = *edit_.graph().node(id).op;
    if (op.reducer == Reducer::sum_of_squares) return;
    const bool takes_gradient = is_optimizer_update(edit_.graph().node(id));
    std::size_t first_dy = op.name == "RowsSumOfSquares" ? 3
                           : op.role == Role::rows_update
                               ? RowsOperands(edit_.graph().node(id)).gradients()
                               : SIZE_MAX;
    for (std::size_t i = first_dy; i < edit_.graph().node(id).inputs.size(); ++i) {
      if (!is_half(edit_.graph().node(id).inputs[i])) first_dy = SIZE_MAX;  // all of one type
    }
    for (std::size_t i = 0; i < edit_.graph().node(id).inputs.size(); ++i) {
      const ValueId input = edit_.graph().node(id).inputs[i];
      if (!input || !is_half(input) || is_stored(input)) continue;
      if ((takes_gradient && i == 1) || i >= first_dy) continue;
      widen_operand(id, i);
    }
    infer(id);
    if (first_dy == SIZE_MAX || edit_.has_fast_kernel(id)) return;
    for (std::size_t i = first_dy; i < edit_.graph().node(id).inputs.size(); ++i) {
      if (is_half(edit_.graph().node(id).inputs[i])) widen_operand(id, i);
    }
  }

  void widen_operand(NodeId id, std::size_t i) {
    const ValueId input = edit_.graph().node(id).inputs[i];
    const ValueId wide = cast(input, DType::float32, edit_.device(id), id);
    edit_.graph().node(id).inputs[i] = wide;
  }

  // The type in which a node outside of updates computes; nothing where it has no choice.
  std::optional<DType> type_for(NodeId id) const {
    const Node& node = edit_.graph().node(id);
    bool any = false, wide = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input && dtype(input) == DType::float64) return std::nullopt;
      if (!is_changeable(node, i)) continue;
      any = true;
      wide = wide || (!is_half(input) && !edit_.graph().is_constant(input) && !is_master(input));
    }
    if (!any || node.op->scalar == ScalarFunction::cast) return std::nullopt;
    switch (constraint(id)) {
      case Precision::low:
        return half_;
      case Precision::float32:
        return DType::float32;
      case Precision::follow:
        // Losses are float32, also those that read no labels.
        if (node.phase == Phase::forward && node.path.starts_with("loss.")) return DType::float32;
        break;
    }
    // Constants and weights do not decide, except where there is nothing else.
    return wide ? DType::float32 : has_half(node) ? half_ : DType::float32;
  }
  bool has_half(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return input && is_half(input); });
  }
  bool is_master(ValueId value) const {
    if (edit_.graph().value(value).kind != ValueKind::state) return false;
    // A loss scale may exceed float16's range: it stays in float32.
    const std::vector<State>& states = edit_.graph().states;
    return std::any_of(states.begin(), states.end(), [&](const State& state) {
      return state.initial == value && state.kind != StateKind::optimizer;
    });
  }

  void settle(NodeId id) {
    const std::optional<DType> type = type_for(id);
    if (!type) return;
    const std::size_t inputs = edit_.graph().node(id).inputs.size();
    for (std::size_t i = 0; i < inputs; ++i) {
      const ValueId input = edit_.graph().node(id).inputs[i];
      if (!is_changeable(edit_.graph().node(id), i) || dtype(input) == *type) continue;
      const ValueId other = cast(input, *type, edit_.device(id), id);
      edit_.graph().node(id).inputs[i] = other;
    }
    infer(id);
  }

  // Infers the types of the outputs anew.
  void infer(NodeId id) {
    Graph& graph = edit_.graph();
    Node node = graph.node(id);
    node.outputs.clear();
    const std::vector<TensorType> types = node.op->infer(NodeView{graph, node});
    const std::vector<ValueId>& outputs = graph.node(id).outputs;
    assert(types.size() == outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      graph.value(outputs[i]).type = types[i];
    }
  }

  // Narrows a value on the device that makes it, and widens it on the one that reads it, so that
  // the link carries the small form.
  ValueId cast(ValueId value, DType to, int reader_device, NodeId reader) {
    const NodeId producer = edit_.graph().value(value).producer;
    if (producer && edit_.graph().node(producer).op->scalar == ScalarFunction::cast) {
      const ValueId narrow = edit_.graph().node(producer).inputs[0];
      if (dtype(narrow) == to && is_stored(narrow)) return narrow;  // it was only widened
    }
    const int from = producer ? edit_.device(producer) : home_of(value);
    const bool at_source = to == half_ && !edit_.graph().is_constant(value);
    // A constant is later stored on each device that reads it.
    const int device = at_source ? from : edit_.graph().is_constant(value) ? host : reader_device;
    ValueId& known = casts_[{value.index, to, device}];
    if (known) return known;
    if (edit_.graph().is_constant(value)) {
      Value copy = edit_.graph().value(value);
      copy.constant = std::make_shared<const HostTensor>(copy.constant->converted(to));
      copy.type = copy.constant->type();
      copy.name += "@" + std::string(name_of(to));
      known = edit_.add_value(std::move(copy));
    } else if (producer && is_view(edit_.graph().node(producer)) && to == half_) {
      // Casts what the view shows and views that, so that other readers can use the cast, too.
      const Node view = edit_.graph().node(producer);
      std::vector<ValueId> inputs = view.inputs;
      inputs[0] = cast(inputs[0], to, reader_device, reader);
      const NodeId node = edit_.add(view.op->name, std::move(inputs), view.attributes, producer);
      known = edit_.graph().node(node).outputs[edit_.graph().value(value).output_index];
    } else {
      const NodeId like = at_source && producer ? producer : reader;
      const NodeId node = edit_.add("Cast", {value}, {{"to", std::string(name_of(to))}}, like);
      edit_.set_device(node, device);
      known = edit_.graph().node(node).outputs[0];
      edit_.graph().value(known).name =
          edit_.graph().value(value).name + "@" + std::string(name_of(to)) +
          (at_source ? "" : "@" + edit_.context().devices[device]->name());
    }
    return known;
  }

  int home_of(ValueId value) const {
    const Graph& graph = edit_.graph();
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      if (graph.states[s].initial == value) return edit_.place(s).param;
    }
    return host;  // a fed input
  }

  PlacedEdit& edit_;
  const DType half_;
  std::size_t count_;          // nodes at the start
  std::vector<bool> is_fast_;  // per device
  std::vector<bool> stored_;   // per value at the start
  std::map<std::tuple<std::int32_t, DType, int>, ValueId> casts_;
};

}  // namespace

PlacedGraph precision(PlacedGraph placed, const LowerContext& context) {
  if (context.options.compute == DType::float32) return placed;
  PlacedEdit edit(std::move(placed), context);
  Narrowing(edit).run();
  return edit.finish();
}

}  // namespace tandem
