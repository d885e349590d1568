#include "engine/lower/placed_graph.h"

#include <algorithm>
#include <cassert>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/error.h"
#include "engine/lower/kernel_choice.h"
#include "engine/operators/grouped_update.h"

namespace tandem {
namespace {

std::vector<char> reached_nodes(const Graph& graph) {
  std::vector<char> reached(graph.nodes.size(), 0);
  std::vector<std::int32_t> todo;
  auto need = [&](ValueId id) {
    if (!id) return;
    const NodeId producer = graph.value(id).producer;
    if (producer && !reached[producer.index]) {
      reached[producer.index] = 1;
      todo.push_back(producer.index);
    }
  };
  for (const NamedValue& output : graph.outputs) need(output.value);
  for (const State& state : graph.states) need(state.final);
  while (!todo.empty()) {
    const Node& node = graph.nodes[todo.back()];
    todo.pop_back();
    for (ValueId input : node.inputs) need(input);
  }
  return reached;
}

// Nodes that read `value` or a view of it.
void collect_readers(const Graph& graph, const std::vector<std::vector<NodeId>>& readers,
                     ValueId value, std::vector<NodeId>& found) {
  for (NodeId reader : readers[value.index]) {
    found.push_back(reader);
    if (is_view(graph.node(reader))) {
      collect_readers(graph, readers, graph.node(reader).outputs[0], found);
    }
  }
}

// Throws for nodes that wait for each other: a pass made a cycle, or states need each other's new
// values.
[[noreturn]] void refuse_cycle(const Graph& graph, const std::vector<int>& missing) {
  Diagnostic d;
  d.message = "operators of the step wait for each other: a defect of Tandem, please report it";
  for (std::size_t n = 0; n < missing.size(); ++n) {
    if (missing[n] == 0) continue;
    const Node& node = graph.nodes[n];
    if (d.path.empty()) d.path = node.path;
    d.got += (d.got.empty() ? "" : ", ") + node.op->name + " " + node.path;
    if (d.got.size() > 200) break;
  }
  throw Error(ErrorKind::runtime, std::move(d));
}

}  // namespace

PlacedGraph tidy(PlacedGraph placed, const std::vector<double>& keys) {
  Graph& from = placed.graph;  // its parts are moved once the order is known
  const std::size_t count = from.nodes.size();
  const std::vector<char> reached = reached_nodes(from);

  // Edges: producer -> reader, and readers of a state -> its writer.
  std::vector<std::vector<std::int32_t>> next(count);
  std::vector<int> missing(count, 0);
  auto edge = [&](NodeId a, NodeId b) {
    next[a.index].push_back(b.index);
    ++missing[b.index];
  };
  std::vector<std::vector<NodeId>> readers(from.values.size());
  for (std::size_t n = 0; n < count; ++n) {
    if (!reached[n]) continue;
    for (ValueId input : from.nodes[n].inputs) {
      if (!input) continue;
      if (from.value(input).producer) edge(from.value(input).producer, node_id(n));
      readers[input.index].push_back(node_id(n));
    }
  }
  for (const State& state : from.states) {
    if (state.final == state.initial) continue;
    const NodeId writer = from.value(state.final).producer;
    std::vector<NodeId> before;
    collect_readers(from, readers, state.initial, before);
    for (NodeId reader : before) {
      if (!(reader == writer)) edge(reader, writer);
    }
  }

  using Entry = std::pair<double, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::size_t wanted = 0;
  for (std::size_t n = 0; n < count; ++n) {
    if (!reached[n]) continue;
    ++wanted;
    if (missing[n] == 0) ready.emplace(keys[n], static_cast<std::int32_t>(n));
  }
  std::vector<std::int32_t> order;
  while (!ready.empty()) {
    const std::int32_t n = ready.top().second;
    ready.pop();
    order.push_back(n);
    for (std::int32_t reader : next[n]) {
      if (--missing[reader] == 0) ready.emplace(keys[reader], reader);
    }
  }
  if (order.size() != wanted) refuse_cycle(from, missing);

  // Values in the order of their first use; inputs and states first.
  PlacedGraph to;
  to.states = std::move(placed.states);
  to.notes = std::move(placed.notes);
  to.graph.values.reserve(from.values.size());
  to.graph.nodes.reserve(order.size());
  to.nodes.reserve(order.size());
  std::vector<ValueId> map(from.values.size());
  std::unordered_set<std::string> names(from.values.size());
  auto keep = [&](ValueId old) {
    if (!old) return ValueId{};
    if (!map[old.index]) {
      map[old.index] = ValueId{static_cast<std::int32_t>(to.graph.values.size())};
      Value& value = to.graph.values.emplace_back(std::move(from.value(old)));
      // Each pass makes names that are unique only in its own graph.
      while (!names.insert(value.name).second) value.name += "'";
    }
    return map[old.index];
  };
  for (const NamedValue& input : from.inputs)
    to.graph.inputs.push_back({input.name, keep(input.value)});
  for (const State& state : from.states) keep(state.initial);
  for (std::int32_t n : order) {
    Node node = std::move(from.nodes[n]);
    for (ValueId& input : node.inputs) input = keep(input);
    for (ValueId& output : node.outputs) {
      output = keep(output);
      if (output) to.graph.value(output).producer = node_id(to.graph.nodes.size());
    }
    to.graph.nodes.push_back(std::move(node));
    to.nodes.push_back(std::move(placed.nodes[n]));
  }
  for (const NamedValue& output : from.outputs)
    to.graph.outputs.push_back({output.name, keep(output.value)});
  for (State& state : from.states) {
    state.initial = keep(state.initial);
    state.final = keep(state.final);
    to.graph.states.push_back(std::move(state));
  }
  return to;
}

PlacedEdit::PlacedEdit(PlacedGraph placed, const LowerContext& context)
    : placed_(std::move(placed)), context_(context) {
  const Graph& graph = placed_.graph;
  for (std::vector<NodeId>& readers : readers_of(graph)) values_.push_back({std::move(readers)});
  for (const NamedValue& output : graph.outputs) values_[output.value.index].kept = true;
  for (const State& state : graph.states) values_[state.final.index].kept = true;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) keys_.push_back(static_cast<double>(n));
}

NodeId PlacedEdit::only_reader(ValueId value) const {
  const bool single = readers(value).size() == 1 && !is_kept(value);
  return single ? readers(value)[0] : NodeId{};
}

NodeId PlacedEdit::add(std::string_view op, std::vector<ValueId> inputs, Attributes attributes,
                       NodeId like, const std::vector<NodeId>& merged,
                       std::shared_ptr<const Graph> body) {
  Graph& graph = placed_.graph;
  Node node;
  node.op = &context_.operators.get(op);
  node.attributes = std::move(attributes);
  for (const AttributeSpec& spec : node.op->attributes) {
    if (node.attributes.find(spec.name) == nullptr) node.attributes.set(spec.name, spec.value);
  }
  node.inputs = std::move(inputs);
  const std::vector<Port>& ports = node.op->inputs;  // optional ones that are left out are absent
  if ((ports.empty() || !ports.back().variadic) && node.inputs.size() < ports.size())
    node.inputs.resize(ports.size());
  node.path = graph.node(like).path;
  node.phase = graph.node(like).phase;
  node.origins = graph.node(like).origins;
  for (NodeId other : merged) {
    for (const std::string& origin : graph.node(other).origins) {
      if (std::find(node.origins.begin(), node.origins.end(), origin) == node.origins.end()) {
        node.origins.push_back(origin);
      }
    }
  }
  node.body = std::move(body);
  const std::vector<TensorType> types = node.op->infer(NodeView{graph, node});
  const NodeId id = node_id(graph.nodes.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    Value value;
    value.name = std::string(op) + "/" + std::to_string(graph.values.size());
    value.type = types[i];
    value.producer = id;
    value.output_index = static_cast<std::int32_t>(i);
    node.outputs.push_back(add_value(std::move(value)));
  }
  graph.nodes.push_back(std::move(node));
  placed_.nodes.push_back(PlacedNode(place(like)));
  keys_.push_back(keys_[like.index]);
  return id;
}

ValueId PlacedEdit::add_value(Value value) {
  const ValueId id{static_cast<std::int32_t>(placed_.graph.values.size())};
  placed_.graph.values.push_back(std::move(value));
  values_.emplace_back();
  return id;
}

void PlacedEdit::add_state(State state, int device, int lookahead) {
  values_[state.final.index].kept = true;
  placed_.graph.states.push_back(std::move(state));
  PlacedState& place = placed_.states.emplace_back();
  place.state = place.param = device;
  place.lookahead = lookahead;
}

ValueId PlacedEdit::add_input(const std::string& name, const TensorType& type) {
  Value value;
  value.name = name;
  value.type = type;
  value.kind = ValueKind::input;
  const ValueId id = add_value(std::move(value));
  placed_.graph.inputs.push_back({name, id});
  return id;
}

void PlacedEdit::drop(NodeId node) {
  Graph& graph = placed_.graph;
  assert(node.index + 1 == static_cast<std::int32_t>(graph.nodes.size()));
  graph.values.resize(graph.values.size() - graph.node(node).outputs.size());
  values_.resize(graph.values.size());
  graph.nodes.pop_back();
  placed_.nodes.pop_back();
  keys_.pop_back();
}

void PlacedEdit::replace(ValueId old, ValueId by) {
  values_[old.index].replaced = by;
  Graph& graph = placed_.graph;
  if (graph.value(by).kind == ValueKind::computed) {
    std::swap(graph.value(by).name, graph.value(old).name);
  }
}

bool PlacedEdit::has_fast_kernel(NodeId id) const {
  return find_fast_kernel(placed_.graph, id, *context_.devices[device(id)],
                          context_.options.deterministic) != nullptr;
}

bool PlacedEdit::stays_if_fast(NodeId node) {
  const bool stays = has_fast_kernel(node);
  if (!stays) drop(node);
  return stays;
}

std::vector<NodeId> PlacedEdit::nodes() const {
  std::vector<NodeId> ids(placed_.graph.nodes.size());
  for (std::size_t n = 0; n < ids.size(); ++n) ids[n] = NodeId{static_cast<std::int32_t>(n)};
  return ids;
}

PlacedGraph PlacedEdit::finish() {
  Graph& graph = placed_.graph;
  auto last = [&](ValueId id) {
    while (id && values_[id.index].replaced) id = values_[id.index].replaced;
    return id;
  };
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) input = last(input);
  }
  for (NamedValue& output : graph.outputs) output.value = last(output.value);
  for (State& state : graph.states) state.final = last(state.final);
  return tidy(std::move(placed_), keys_);
}

ValueId behind_views(const Graph& graph, ValueId value) {
  for (;;) {
    const NodeId producer = graph.value(value).producer;
    if (!producer || !is_view(graph.node(producer))) return value;
    value = graph.node(producer).inputs[0];
  }
}

std::vector<int> overwritten_inputs(const Node& node) {
  std::vector<int> result(node.outputs.size(), -1);
  for (const Alias& alias : aliases_of(node)) result[alias.output] = alias.input;
  return result;
}

}  // namespace tandem
