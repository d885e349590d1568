// Merges the exchanges of gradients and weights between ranks into a few, in the order in which
// backward and updates make them: many small ones would cost a latency each. The planner lays the
// operands of sums over all ranks side by side, so that they travel as one block; those of the
// other kinds stay where they are.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "engine/lower/bucket_size.h"
#include "engine/lower/collectives/gathered_weights.h"
#include "engine/lower/early_keys.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

struct Exchanged {
  NodeId node;
  double ready = 0;  // when its operand is made
  std::size_t bytes = 0;
};

// Exchanges with equal keys may become one: device, operator, type, reduction, whether the memory
// of the operands is needed soon, and how many exchanges come before, so that none waits for
// another.
using Key = std::tuple<int, std::string, DType, std::string, std::int64_t, int>;

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

// Sums of micro-batches are states, which have to be copied next to others: large ones are not.
bool may_lie_beside(PlacedEdit& edit, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    return !edit.is_kept(input) || edit.graph().type(input).bytes() <= first_bucket_bytes;
  });
}

// Gradients of parameters that are exchanged whole or in parts, and weights that are gathered.
std::map<Key, std::vector<Exchanged>> find_exchanges(PlacedEdit& edit) {
  const Graph& graph = edit.graph();
  const std::vector<double> keys = early_keys(graph);
  const std::vector<int> depth = depths(graph);
  std::vector<char> makes_weight(graph.nodes.size(), 0);
  for (const GatheredWeight& weight : gathered_weights(graph))
    makes_weight[weight.gather.index] = 1;
  std::map<Key, std::vector<Exchanged>> found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op->role != Role::collective || node.phase != Phase::update) continue;
    const CollectiveKind kind = collective_kind(node);
    const bool may_join = kind == CollectiveKind::all_reduce       ? may_lie_beside(edit, node)
                          : kind == CollectiveKind::reduce_scatter ? true
                          : node.op->name == gather_states_name    ? true
                                                                   : makes_weight[n] != 0;
    if (!may_join) continue;
    Exchanged one{node_id(n), keys[n], 0};
    for (ValueId value : reduces(kind) ? node.inputs : node.outputs)
      one.bytes += graph.type(value).bytes();
    const bool is_prompt =
        kind == CollectiveKind::reduce_scatter && node.attributes.integer("prompt") != 0;
    const Key key{edit.device(one.node),
                  node.op->name,
                  graph.type(node.inputs[0]).dtype,
                  reduces(kind) ? node.attributes.text("reduction") : "",
                  is_prompt,
                  depth[n]};
    found[key].push_back(one);
  }
  for (auto& [key, list] : found) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Exchanged& a, const Exchanged& b) { return a.ready < b.ready; });
  }
  return found;
}

// Replaces the bucket by one node, which is ready with the last of them.
void merge(PlacedEdit& edit, const std::vector<NodeId>& bucket, int number) {
  if (bucket.size() < 2) return;
  std::vector<ValueId> inputs, outputs;
  for (NodeId id : bucket) {
    const Node& node = edit.graph().node(id);
    inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.end());
    outputs.insert(outputs.end(), node.outputs.begin(), node.outputs.end());
  }
  const std::string op = edit.graph().node(bucket[0]).op->name;
  const Attributes attributes = edit.graph().node(bucket[0]).attributes;
  const NodeId all = edit.add(op, std::move(inputs), attributes, bucket.back(), bucket);
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
  for (const auto& [key, list] : find_exchanges(edit)) {
    std::vector<NodeId> bucket;
    std::size_t all = 0, bytes = 0, most = first_bucket_bytes;
    for (const Exchanged& one : list) all += one.bytes;
    for (const Exchanged& one : list) {
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
