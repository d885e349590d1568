#include "engine/train/graph/graph_with_loss.h"

#include "engine/train/divergence/bound_lengths.h"
#include "engine/train/graph/whole_batch.h"
#include "engine/train/sharding/shard_products.h"

namespace tandem {
namespace {

/// The graph and its losses as several ranks compute them where they shard matrices of products:
/// the losses are outputs for a while.
GraphWithLoss with_shared_products(const OperatorSet& operators, GraphWithLoss whole,
                                   const TrainingRequest& request) {
  if (!request.ranks.several() || !shards_products(whole.graph, request.shards)) return whole;
  std::vector<ValueId*> losses{&whole.loss.total};
  for (auto& [name, value] : whole.loss.terms) losses.push_back(&value);
  const std::size_t others = whole.graph.outputs.size();
  for (std::size_t i = 0; i < losses.size(); ++i)
    whole.graph.outputs.push_back({"loss." + std::to_string(i), *losses[i]});
  whole.graph = shard_products(operators, whole.graph, request.shards, request.ranks);
  for (std::size_t i = 0; i < losses.size(); ++i)
    *losses[i] = whole.graph.outputs[others + i].value;
  whole.graph.outputs.resize(others);
  return whole;
}

}  // namespace

GraphWithLoss with_loss(const OperatorSet& operators, Graph forward, const TrainingRequest& request,
                        bool keeps_outputs) {
  check_bound_lengths(*request.config, forward, request.fields);
  GraphBuilder g(operators, std::move(forward));
  const bool trains = !keeps_outputs;
  const WholeBatch batch = trains ? whole_batch(g, request) : WholeBatch{};
  Loss loss = add_loss(g, request.config->loss, request.fields, request.samples, batch);
  if (!keeps_outputs) g.graph().outputs.clear();
  return with_shared_products(operators, {g.finish(), std::move(loss)}, request);
}

void name_loss(GraphBuilder& g, const Loss& loss, RankSums& ranks) {
  std::vector<std::pair<std::string, ValueId>> named{{"loss", loss.total}};
  for (const auto& [name, value] : loss.terms) {
    if (value != loss.total) named.emplace_back("loss." + name, value);
  }
  ranks.add_losses(named, stop_flag);
  for (const auto& each : named) {
    std::erase_if(g.graph().outputs, [&](const NamedValue& o) { return o.name == each.first; });
    g.output(each.first, each.second);
  }
}

}  // namespace tandem
