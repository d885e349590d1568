#include "engine/train/sharding/shard_bags.h"

#include <algorithm>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/shard_rows.h"

namespace tandem {
namespace {

// What a value is computed from.
struct Origins {
  bool inputs = false, states = false;
};
Origins origins_of(const Graph& graph, ValueId value) {
  Origins found;
  std::vector<bool> seen(graph.values.size());
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    if (!at || seen[static_cast<std::size_t>(at.index)]) continue;
    seen[static_cast<std::size_t>(at.index)] = true;
    if (const NodeId producer = graph.value(at).producer) {
      const std::vector<ValueId>& inputs = graph.node(producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    } else if (std::any_of(graph.states.begin(), graph.states.end(),
                           [&](const State& state) { return state.initial == at; })) {
      found.states = true;
    } else {
      found.inputs |= !graph.is_constant(at);
    }
  }
  return found;
}

bool has_weights(const Node& bag) { return bag.inputs.size() > 2 && bag.inputs[2]; }

}  // namespace

bool crosses_as_sums(const Graph& graph, const std::vector<TableLookup>& lookups,
                     const RankShares& ranks) {
  const ValueId of_all = graph.node(lookups.front().node).inputs[1];
  const TensorType& ids = graph.type(of_all);
  // Bags of one sample each; one bag of all samples belongs to no rank.
  if (ids.rank() < 2 || ids.elements() == 0) return false;
  const std::int64_t length = ids.shape.back(), own = std::max<std::int64_t>(ranks.own, 1);
  if (ids.elements() % own != 0 || ids.elements() / own % length != 0) return false;
  const Origins origins = origins_of(graph, of_all);
  if (!origins.inputs || origins.states) return false;

  const auto n = static_cast<double>(ranks.ranks);
  const auto most = static_cast<double>(most_elements(graph, of_all, ranks));
  double sums = 0, rows = 0;                 // bytes that a rank gets
  std::map<std::int64_t, double> ids_bytes;  // bytes of one id, by rows of the table
  for (const auto& [id, table] : lookups) {
    const Node& node = graph.node(id);
    if (node.op->role != Role::embedding_bag) return false;
    if (has_weights(node) && origins_of(graph, node.inputs[2]).states) return false;
    const ShardedRows shards{table.shape[0], ranks.ranks};
    ids_bytes[shards.rows] = static_cast<double>(size_of(shards.place_type()));
    const double all_rows = static_cast<double>(shards.rows),
                 row = static_cast<double>(table.bytes()) / all_rows;
    sums += (n - 1) * 2 * most / static_cast<double>(length) * row;
    rows += (n - 1) / n * std::min(most, all_rows) * 2 * row;
  }
  for (const auto& [all_rows, bytes] : ids_bytes) {
    sums += (n - 1) * most * bytes;
    rows += (n - 1) / n * std::min(most, static_cast<double>(all_rows)) * 8;
  }
  return sums <= rows;
}

// Gathers bags of any shape as the rows of a matrix [bags, length].
ValueId ShardBags::gathered(GraphBuilder& g, ValueId of_ids, double filler) {
  const Shape& shape = g.shape(of_ids);
  const std::int64_t length = shape.back(), bags = g.type(of_ids).elements() / length;
  return SampleExchange(g, ranks_).gathered(g.reshape(of_ids, {bags, length}), filler);
}

ValueId ShardBags::own_rows(GraphRewrite& to, ValueId ids, std::int64_t rows) {
  const auto [at, is_new] = own_rows_.try_emplace({ids.index, rows});
  if (!is_new) return at->second;
  GraphBuilder& g = to.builder();
  const Attributes shared{{"rows", rows}, {"ranks", std::int64_t{ranks_.ranks}}};
  const ValueId places = g.add_node("ShardIds", {to.mapped(ids)}, shared);
  const auto absent = static_cast<double>(absent_id_of(g.dtype(places)));
  Attributes own = shared;
  own.set("rank", std::int64_t{ranks_.rank});
  own.set("filled", 1.0 / static_cast<double>(ranks_.ranks));
  return at->second = g.add_node("OwnRows", {gathered(g, places, absent)}, std::move(own));
}

ValueId ShardBags::weights(GraphRewrite& to, ValueId weights) {
  const auto [at, is_new] = weights_.try_emplace(weights.index);
  if (is_new) at->second = gathered(to.builder(), to.mapped(weights), 0);
  return at->second;
}

ValueId ShardBags::sums(GraphRewrite& to, NodeId bag, std::int64_t rows) {
  const Node& node = to.from().node(bag);
  const TensorType &ids = to.from().type(node.inputs[1]), &y = to.from().type(node.outputs[0]);
  GraphBuilder& g = to.builder();
  to.scope_of(bag);
  std::vector<ValueId> inputs{to.mapped(node.inputs[0]), own_rows(to, node.inputs[1], rows)};
  if (has_weights(node)) inputs.push_back(weights(to, node.inputs[2]));
  const ValueId parts = g.add_node(node.op->name, std::move(inputs), node.attributes);
  const ValueId sums = SampleExchange(g, ranks_).summed(parts, ids.elements() / ids.shape.back());
  return g.reshape(sums, y.shape);
}

}  // namespace tandem
