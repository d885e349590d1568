#include "engine/lower/tables/rows_ahead.h"

#include <algorithm>
#include <unordered_set>

#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

/// Marks those of the nodes at the start whose results an accelerator computes with in forward or
/// backward.
std::vector<char> awaited_nodes(PlacedEdit& edit) {
  const Graph& graph = edit.graph();
  std::vector<char> awaited(graph.nodes.size(), 0);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    for (ValueId output : graph.nodes[n].outputs) {
      if (!output) continue;
      for (NodeId reader : edit.readers(output)) {
        const bool there = edit.device(reader) != host && graph.node(reader).phase != Phase::update;
        if (there || awaited[reader.index]) awaited[n] = 1;
      }
    }
  }
  return awaited;
}

// The step's number, which is known before the gradients are. The count that an update reads is
// derived from it: skipped steps (loss scale) and steps that its parameter has missed do not count.
ValueId fed_step(const Graph& graph, ValueId of_update) {
  const NodeId producer = graph.value(of_update).producer;
  if (!producer) return of_update;
  const Node& node = graph.node(producer);
  return fed_step(graph, node.inputs[node.op->name == "LossScale" ? 3 : 0]);
}

}  // namespace

ValueId copy_rows(PlacedEdit& edit, ValueId rows, ValueId count, int to, NodeId like,
                  ValueId into) {
  const NodeId node = edit.add("Transfer", {rows, into, count}, {}, like);
  edit.set_device(node, to);
  const ValueId there = edit.graph().node(node).outputs[0];
  edit.graph().value(there).name =
      edit.graph().value(rows).name + "@" + edit.context().devices[to]->name();
  return there;
}

RowsAhead::RowsAhead(PlacedEdit& edit) : edit_(edit) {
  const std::vector<char> awaited = awaited_nodes(edit);
  for (std::size_t n = 0; n < awaited.size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    if (awaited[n] && edit.device(id) == host) after_own_work_ = static_cast<double>(n) + 0.5;
  }
}

NodeId RowsAhead::update_of(std::size_t table) const {
  const Graph& graph = edit_.graph();
  const State& state = graph.states[table];
  return state.final == state.initial ? NodeId{} : graph.value(state.final).producer;
}

std::optional<std::string> RowsAhead::update_refusal(std::size_t table) const {
  const Graph& graph = edit_.graph();
  const NodeId update = update_of(table);
  if (!update) return "a micro-batch of this program does not update them";
  const Node& node = graph.node(update);
  if (node.op->role != Role::rows_update) return "their gradient is dense";
  if (!node.attributes.flag("lazy")) return "every step changes all of them";
  const NodeId groups = graph.value(node.inputs[RowsOperands(node).unique()]).producer;
  if (!groups || graph.node(groups).op->role != Role::id_groups)
    return "a step has several micro-batches";
  return std::nullopt;
}

std::optional<std::string> RowsAhead::ids_refusal(ValueId ids) const {
  const Graph& graph = edit_.graph();
  std::vector<ValueId> todo{ids};
  std::unordered_set<std::int32_t> seen;
  bool is_fed = false;
  while (!todo.empty()) {
    const ValueId id = todo.back();
    todo.pop_back();
    if (!id || !seen.insert(id.index).second) continue;
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::state) return "their ids depend on " + value.name;
    if (value.kind == ValueKind::input) {
      is_fed = true;
      for (const NamedValue& input : graph.inputs) {
        if (input.value == id && !next_.contains(id.index) &&
            graph.find_input(next_input(input.name)) != nullptr)
          return "the model has an input " + next_input(input.name) + " of its own";
      }
    }
    if (!value.producer) continue;
    const Node& node = graph.node(value.producer);
    if (node.op->random) return "their ids are random";
    const int device = edit_.device(value.producer);
    if (device != host && !is_view(node))
      return "their ids are computed on " + edit_.context().devices[device]->name();
    todo.insert(todo.end(), node.inputs.begin(), node.inputs.end());
  }
  if (!is_fed) return "their ids are the same in every step";
  return std::nullopt;
}

std::optional<std::string> RowsAhead::refusal(std::size_t table, ValueId ids) const {
  const std::optional<std::string> reason = update_refusal(table);
  return reason ? reason : ids_refusal(ids);
}

ValueId RowsAhead::next_of(ValueId value, NodeId like) {
  if (!value || edit_.graph().is_constant(value)) return value;
  if (const auto known = next_.find(value.index); known != next_.end()) return known->second;
  const NodeId producer = edit_.graph().value(value).producer;
  if (!producer) {
    const std::vector<NamedValue>& inputs = edit_.graph().inputs;
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const NamedValue& each) { return each.value == value; });
    const TensorType type = edit_.graph().type(value);
    return next_[value.index] = edit_.add_input(next_input(input->name), type);
  }
  const Node node = edit_.graph().node(producer);
  std::vector<ValueId> inputs;
  for (ValueId input : node.inputs) inputs.push_back(next_of(input, like));
  const NodeId copy =
      edit_.add(node.op->name, std::move(inputs), node.attributes, like, {}, node.body);
  edit_.set_device(copy, host);
  edit_.set_key(copy, after_own_work_);
  const std::vector<ValueId> outputs = edit_.graph().node(copy).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i]) next_[node.outputs[i].index] = outputs[i];
  }
  return next_.at(value.index);
}

NodeId RowsAhead::add_late_in_order(std::string_view op, std::vector<ValueId> inputs, NodeId like) {
  const NodeId node = edit_.add(op, std::move(inputs), {}, like);
  edit_.set_device(node, host);
  edit_.set_key(node, after_own_work_);
  return node;
}

State RowsAhead::new_state(std::size_t table, const std::string& name, const TensorType& type) {
  Graph& graph = edit_.graph();
  State state;
  state.parameter = graph.states[table].name;
  state.derived = PrefetchedRows{state.parameter};
  state.name = state.parameter + "/" + name;
  for (int lookup = 2; graph.find_state(state.name) != nullptr; ++lookup)
    state.name = state.parameter + "/" + name + std::to_string(lookup);
  state.kind = StateKind::optimizer;
  state.start = HostTensor(type);
  state.starts_at_zero = true;
  Value value;
  value.name = state.name;
  value.type = type;
  value.kind = ValueKind::state;
  state.initial = edit_.add_value(std::move(value));
  return state;
}

void RowsAhead::finish_state(State state, ValueId final, int device) {
  edit_.graph().value(final).name = state.name + "/new";
  state.final = final;
  edit_.add_state(std::move(state), device);
}

std::size_t RowsAhead::fetch_of(const ShippedLookup& lookup) {
  const Node& update = edit_.graph().node(update_of(lookup.table));
  const ValueId updated = update.inputs[RowsOperands(update).unique()];
  for (std::size_t f = 0; f < fetches_.size(); ++f) {
    if (fetches_[f].groups == lookup.groups && fetches_[f].updated == updated) return f;
  }
  fetches_.push_back(make_fetch(lookup, updated));
  return fetches_.size() - 1;
}

RowsAhead::Fetch RowsAhead::make_fetch(const ShippedLookup& lookup, ValueId updated) {
  const Graph& graph = edit_.graph();
  const NodeId like = lookup.node;
  const Node update = graph.node(update_of(lookup.table)), groups = graph.node(lookup.groups);
  const RowsOperands at(update);
  const ValueId step = fed_step(graph, update.inputs[at.scalars() + 1]),
                changed = update.inputs[at.count()];
  const ValueId unique = groups.outputs[UniqueOutputs::unique],
                count = groups.outputs[UniqueOutputs::count];
  Fetch fetch;
  fetch.groups = lookup.groups;
  fetch.updated = updated;

  State rows = new_state(lookup.table, "ahead_rows", graph.type(unique)),
        rows_count = new_state(lookup.table, "ahead_count", graph.type(count)),
        rows_step = new_state(lookup.table, "ahead_step", {DType::int64, {}});
  const NodeId plan = edit_.add(
      "PlanRows", {unique, count, rows.initial, rows_count.initial, rows_step.initial, step}, {},
      like);
  edit_.set_device(plan, host);
  fetch.late = graph.node(plan).outputs[0];
  fetch.late_count = graph.node(plan).outputs[1];
  fetch.place = graph.node(plan).outputs[2];

  const ValueId ids = next_of(groups.inputs[0], like);
  Attributes quiet = groups.attributes;
  quiet.set("quiet", std::int64_t{1});
  const NodeId next = edit_.add("UniqueIndices", {ids}, std::move(quiet), like);
  edit_.set_device(next, host);
  edit_.set_key(next, after_own_work_);
  const std::vector<ValueId> wanted = graph.node(next).outputs;
  const NodeId without =
      add_late_in_order("RowsWithout",
                        {wanted[UniqueOutputs::unique], wanted[UniqueOutputs::count], updated,
                         changed, step, rows.initial, rows_count.initial, rows_step.initial},
                        like);
  const std::vector<ValueId> made = graph.node(without).outputs;
  fetch.early = made[0];
  fetch.early_count = made[1];
  finish_state(std::move(rows), made[0], host);
  finish_state(std::move(rows_count), made[1], host);
  finish_state(std::move(rows_step), made[2], host);
  return fetch;
}

ValueId RowsAhead::lookup(const ShippedLookup& lookup) {
  const NodeId like = lookup.node;
  const int device = lookup.device;
  Fetch& fetch = fetches_[fetch_of(lookup)];
  const Graph& graph = edit_.graph();
  const ValueId table = graph.states[lookup.table].initial;
  const ValueId inverse = graph.node(lookup.groups).outputs[UniqueOutputs::inverse];
  if (!fetch.places[device]) {
    const ValueId count = graph.node(lookup.groups).outputs[UniqueOutputs::count];
    fetch.places[device] = copy_rows(edit_, fetch.place, count, device, like);
  }
  const NodeId late = edit_.add("GatherRows", {table, fetch.late, fetch.late_count}, {}, like);
  edit_.set_device(late, host);
  const ValueId late_rows =
      copy_rows(edit_, graph.node(late).outputs[0], fetch.late_count, device, like);

  const NodeId early =
      add_late_in_order("GatherRows", {table, fetch.early, fetch.early_count}, like);
  const ValueId early_rows = graph.node(early).outputs[0];
  State kept = new_state(lookup.table, "ahead_values", graph.type(early_rows));
  const NodeId y =
      edit_.add("GatherParts", {kept.initial, late_rows, fetch.places[device], inverse}, {}, like);
  edit_.set_device(y, device);
  const ValueId arrived =
      copy_rows(edit_, early_rows, fetch.early_count, device, like, kept.initial);
  edit_.set_key(graph.value(arrived).producer, after_own_work_);
  finish_state(std::move(kept), arrived, device);
  return graph.node(y).outputs[0];
}

}  // namespace tandem
