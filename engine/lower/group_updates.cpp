// Equal updates of small tensors become one kernel call over all of them, or a few calls where
// gradients or weights cross between devices. Large ones stay single, so that each runs right after
// its gradient.
#include <algorithm>
#include <map>

#include "engine/lower/placed_graph.h"
#include "engine/operators/grouped_update.h"

namespace tandem {
namespace {

constexpr std::int64_t small_elements = 64 << 10;

// How many calls updates are divided into, at least and at most, where something crosses.
constexpr std::int64_t least_calls = 4, most_calls = 16;

using Updates = std::vector<NodeId>;

// Whether it is an update that GroupedUpdate takes.
bool is_update(const Node& node) {
  return node.phase == Phase::update && is_optimizer_update(node) &&
         update_kind(node).may_be_grouped();
}

// Updates of one group agree on all of this.
std::string key_of(const PlacedEdit& edit, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::string key = node.op->name + "/" + std::to_string(edit.device(id));
  for (const auto& [name, value] : node.attributes.entries()) key += "/" + to_string(value);
  const std::size_t scalars = first_scalar(node);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (i >= scalars && i < scalars + update_scalars) {
      key += "/" + std::to_string(input.index);
    } else {
      key += input ? "/" + std::string(name_of(graph.type(input).dtype)) : "/-";
    }
  }
  return key;
}

// The last of the nodes that an update waits for. With clipping it is, for all updates, the node
// that makes the scale.
std::int32_t ready_after(const Graph& graph, NodeId id) {
  std::int32_t last = -1;
  for (ValueId input : graph.node(id).inputs) {
    if (input) last = std::max(last, graph.value(input).producer.index);
  }
  return last;
}

// Whether its gradient comes from another device or from all ranks, or its new weight goes to one.
bool crosses(PlacedEdit& edit, NodeId id) {
  const Graph& graph = edit.graph();
  const auto is_transfer = [&](NodeId node) { return graph.node(node).op->role == Role::transfer; };
  const auto is_exchanged = [&](NodeId node) {
    return is_transfer(node) || graph.node(node).op->role == Role::collective;
  };
  NodeId gradient = graph.value(graph.node(id).inputs[1]).producer;
  while (gradient && is_view(graph.node(gradient)))
    gradient = graph.value(graph.node(gradient).inputs[0]).producer;
  if (gradient && is_exchanged(gradient)) return true;
  for (ValueId output : graph.node(id).outputs) {
    const std::vector<NodeId>& readers = edit.readers(output);
    if (std::any_of(readers.begin(), readers.end(), is_transfer)) return true;
  }
  return false;
}

// Divides updates into calls. A call waits for the last of its gradients. On one device's queue
// that costs nothing; over a link, the first updates should run, and their weights be on the way
// back, while the last gradients are made. A call is about as much work as a large tensor, if there
// is enough.
std::vector<Updates> calls_of(PlacedEdit& edit, const Updates& updates) {
  const Graph& graph = edit.graph();
  if (std::none_of(updates.begin(), updates.end(), [&](NodeId id) { return crosses(edit, id); }))
    return {updates};
  struct Ready {
    std::int32_t after;
    NodeId update;
  };
  std::vector<Ready> order;
  std::int64_t total = 0;
  for (NodeId id : updates) {
    order.push_back({ready_after(graph, id), id});
    total += graph.type(graph.node(id).inputs[0]).elements();
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Ready& a, const Ready& b) { return a.after < b.after; });
  const std::int64_t enough =
      std::max(std::min(small_elements, total / least_calls), total / most_calls + 1);
  std::vector<Updates> calls;
  std::int64_t elements = enough;
  std::int32_t after = -2;
  for (const Ready& ready : order) {
    if (elements >= enough && ready.after != after) {
      calls.emplace_back();
      elements = 0;
    }
    calls.back().push_back(ready.update);
    elements += graph.type(graph.node(ready.update).inputs[0]).elements();
    after = ready.after;
  }
  return calls;
}

// Replaces the updates by one node; false where no kernel of the device takes it.
bool put_group(PlacedEdit& edit, const Updates& updates) {
  const Node first = edit.graph().node(updates[0]);
  const std::size_t scalars = first_scalar(first);
  const bool makes_weights = update_group(first).weight;
  std::vector<ValueId> inputs;
  for (NodeId id : updates) {
    const Node& node = edit.graph().node(id);
    inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.begin() + scalars);
    if (makes_weights)
      inputs.push_back(old_weight(node) < node.inputs.size() ? node.inputs[old_weight(node)]
                                                             : ValueId{});
  }
  const auto shared = first.inputs.begin() + static_cast<std::ptrdiff_t>(scalars);
  inputs.insert(inputs.end(), shared, shared + update_scalars);
  Attributes attributes = first.attributes;
  attributes.set("op", first.op->name);
  attributes.set("count", static_cast<std::int64_t>(updates.size()));
  // Only declared attributes may be set: those of the other kinds of update keep their defaults.
  Attributes declared;
  for (const AttributeSpec& spec : edit.context().operators.get("GroupedUpdate").attributes) {
    if (const AttributeValue* value = attributes.find(spec.name)) declared.set(spec.name, *value);
  }
  const NodeId group =
      edit.add("GroupedUpdate", std::move(inputs), std::move(declared), updates.back(), updates);
  edit.graph().node(group).path = "update." + first.op->name;
  if (!edit.stays_if_fast(group)) return false;
  std::size_t next = 0;
  for (NodeId id : updates) {
    const std::vector<ValueId> outputs = edit.graph().node(id).outputs;
    for (ValueId output : outputs) edit.replace(output, edit.graph().node(group).outputs[next++]);
  }
  return true;
}

}  // namespace

PlacedGraph group_updates(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  std::map<std::string, Updates> groups;
  for (const NodeId id : edit.nodes()) {
    const Node& node = edit.graph().node(id);
    if (!is_update(node)) continue;
    const TensorType& master = edit.graph().type(node.inputs[0]);
    if (master.elements() >= small_elements || master.bytes() > context.options.range_bytes)
      continue;
    groups[key_of(edit, edit.graph(), id)].push_back(id);
  }
  for (const auto& [key, group] : groups) {
    for (const Updates& updates : calls_of(edit, group)) {
      if (updates.size() > 1) put_group(edit, updates);
    }
  }
  return edit.finish();
}

}  // namespace tandem
