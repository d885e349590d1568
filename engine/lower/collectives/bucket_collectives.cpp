// AllReduces of gradients become a few, in the order in which backward makes the gradients: many
// small ones would cost a latency each. The planner lays the operands of one side by side, so that
// they travel as one block.
#include <algorithm>
#include <map>
#include <tuple>

#include "engine/lower/bucket_size.h"
#include "engine/lower/early_keys.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

struct Reduction {
  NodeId node;
  double ready = 0;  // when its operand is made
  std::size_t bytes = 0;
};

// What may be one: device, type, reduction, and how many exchanges come before, so that none of
// them waits for another.
using Key = std::tuple<int, DType, std::string, int>;

// Per node: the most exchanges on a way to it, itself included.
std::vector<int> depths(const Graph& graph) {
  std::vector<int> depth(graph.nodes.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (ValueId input : node.inputs) {
      const NodeId producer = input ? graph.value(input).producer : NodeId{};
      if (producer) depth[n] = std::max(depth[n], depth[producer.index]);
    }
    if (node.op->role == Role::collective) ++depth[n];
  }
  return depth;
}

// Sums of micro-batches are states, which are copied to lie beside others: large ones stay alone.
bool may_join(PlacedEdit& edit, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    return !edit.is_kept(input) || edit.graph().type(input).bytes() <= first_bucket_bytes;
  });
}

std::map<Key, std::vector<Reduction>> find_reductions(PlacedEdit& edit) {
  const Graph& graph = edit.graph();
  const std::vector<double> keys = early_keys(graph);
  const std::vector<int> depth = depths(graph);
  std::map<Key, std::vector<Reduction>> found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op->role != Role::collective || node.phase != Phase::update) continue;
    if (collective_kind(node) != CollectiveKind::all_reduce || !may_join(edit, node)) continue;
    Reduction one{NodeId{static_cast<std::int32_t>(n)}, keys[n], 0};
    for (ValueId input : node.inputs) one.bytes += graph.type(input).bytes();
    const Key key{edit.device(one.node), graph.type(node.inputs[0]).dtype,
                  node.attributes.text("reduction"), depth[n]};
    found[key].push_back(one);
  }
  for (auto& [key, list] : found) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Reduction& a, const Reduction& b) { return a.ready < b.ready; });
  }
  return found;
}

// One node instead of them; it is ready with the last.
void merge(PlacedEdit& edit, const std::vector<NodeId>& bucket, int number) {
  if (bucket.size() < 2) return;
  std::vector<ValueId> inputs, outputs;
  for (NodeId id : bucket) {
    const Node& node = edit.graph().node(id);
    inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.end());
    outputs.insert(outputs.end(), node.outputs.begin(), node.outputs.end());
  }
  const Attributes attributes = edit.graph().node(bucket[0]).attributes;
  const NodeId all =
      edit.add(all_reduce_name, std::move(inputs), attributes, bucket.back(), bucket);
  edit.graph().node(all).path = "ranks.bucket." + std::to_string(number);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    edit.replace(outputs[i], edit.graph().node(all).outputs[i]);
}

}  // namespace

PlacedGraph bucket_collectives(PlacedGraph placed, const LowerContext& context) {
  const std::vector<Node>& nodes = placed.graph.nodes;
  if (std::none_of(nodes.begin(), nodes.end(),
                   [](const Node& node) { return node.op->role == Role::collective; })) {
    return placed;
  }
  PlacedEdit edit(std::move(placed), context);
  int number = 0;
  for (const auto& [key, list] : find_reductions(edit)) {
    std::vector<NodeId> bucket;
    std::size_t all = 0, bytes = 0, most = first_bucket_bytes;
    for (const Reduction& one : list) all += one.bytes;
    for (const Reduction& one : list) {
      bucket.push_back(one.node);
      bytes += one.bytes;
      if (bytes < most) continue;
      merge(edit, bucket, number++);
      bucket.clear();
      bytes = 0;
      most = bucket_bytes(all);
    }
    merge(edit, bucket, number++);
  }
  return edit.finish();
}

}  // namespace tandem
