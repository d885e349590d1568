#include "engine/training/ranks/shard_bags.h"

#include <algorithm>

#include "engine/graph/builder.h"
#include "engine/operators/tables/rows.h"
#include "engine/training/ranks/sample_exchange.h"

namespace tandem {

bool crosses_as_sums(const Graph& graph, NodeId lookup, std::int64_t rows,
                     const RankShares& ranks) {
  const Node& node = graph.node(lookup);
  if (node.op->role != Role::embedding_bag) return false;
  const TensorType& ids = graph.type(node.inputs[1]);
  // Without an axis in front of that of a bag there are no rows that could be scattered.
  if (ids.rank() < 2 || ids.elements() == 0 || graph.is_constant(node.inputs[1])) return false;
  if (ranks.own > 0 && ids.shape[0] % ranks.own != 0) return false;
  const std::int64_t most = most_elements(graph, node.inputs[1], ranks);
  return 2 * ranks.ranks * (most / ids.shape.back()) <= std::min(most, rows);
}

ValueId ShardBags::own_rows(GraphRewrite& to, ValueId ids, std::int64_t rows) {
  const auto [at, is_new] = own_rows_.try_emplace({ids.index, rows});
  if (!is_new) return at->second;
  GraphBuilder& g = to.builder();
  const Attributes shared{{"rows", rows}, {"ranks", std::int64_t{ranks_.ranks}}};
  const ValueId places = g.add_node("ShardIds", {to.mapped(ids)}, shared);
  const auto absent = static_cast<double>(absent_id_of(g.dtype(places)));
  const ValueId of_all = SampleExchange(g, ranks_).gathered(places, absent);
  Attributes own = shared;
  own.set("rank", std::int64_t{ranks_.rank});
  return at->second = g.add_node("OwnRows", {of_all}, std::move(own));
}

ValueId ShardBags::sums(GraphRewrite& to, NodeId bag, std::int64_t rows) {
  const Node& node = to.from().node(bag);
  GraphBuilder& g = to.builder();
  SampleExchange exchange(g, ranks_);
  to.scope_of(bag);
  std::vector<ValueId> inputs{to.mapped(node.inputs[0]), own_rows(to, node.inputs[1], rows)};
  if (node.inputs.size() > 2 && node.inputs[2])
    inputs.push_back(exchange.gathered(to.mapped(node.inputs[2])));
  const ValueId parts = g.add_node(node.op->name, std::move(inputs), node.attributes);
  return exchange.summed(parts, to.from().type(node.inputs[1]).shape[0]);
}

}  // namespace tandem
