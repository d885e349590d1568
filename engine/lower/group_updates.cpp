// Equal updates of small tensors become one kernel call over all of them. Large ones stay alone, so
// that each runs right after its gradient.
#include <map>
#include <tuple>

#include "engine/lower/placed_graph.h"
#include "engine/operators/grouped_update.h"

namespace tandem {
namespace {

constexpr std::int64_t small_elements = 64 << 10;

struct Group {
  std::vector<NodeId> updates;
};

bool is_update(const Node& node) {
  return node.phase == Phase::update && is_optimizer_update(node);
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

// Replaces the updates by one node; false where no kernel of the device takes it.
bool put_group(PlacedEdit& edit, const std::vector<NodeId>& updates) {
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
  if (!edit.has_fast_kernel(group)) {
    edit.drop(group);
    return false;
  }
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
  std::map<std::string, Group> groups;
  for (std::size_t n = 0; n < edit.graph().nodes.size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const Node& node = edit.graph().node(id);
    if (!is_update(node)) continue;
    const TensorType& master = edit.graph().type(node.inputs[0]);
    if (master.elements() >= small_elements || master.bytes() > context.options.range_bytes)
      continue;
    groups[key_of(edit, edit.graph(), id)].updates.push_back(id);
  }
  for (auto& [key, group] : groups) {
    if (group.updates.size() > 1) put_group(edit, group.updates);
  }
  return edit.finish();
}

}  // namespace tandem
