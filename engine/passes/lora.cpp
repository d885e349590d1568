#include "engine/passes/lora.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "engine/graph/parameter_names.h"
#include "engine/graph/rewrite.h"

namespace tandem {
namespace {

/// `graph` with everything but `train` frozen.
Graph frozen_but(Graph graph, const std::vector<TrainRule>& train,
                 const std::set<std::string>& new_layers) {
  const ParameterNames names(graph);
  std::vector<Diagnostic> problems;
  std::vector<Selector> trained;
  for (const TrainRule& rule : train) {
    trained.emplace_back(rule.at);
    const bool any = std::any_of(graph.states.begin(), graph.states.end(), [&](const State& s) {
      return s.kind == StateKind::parameter && names.covers(trained.back(), s);
    });
    if (!any) problems.push_back(no_match(rule.where, "parameters.train", rule.at, graph));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  for (State& state : graph.states) {
    if (state.kind != StateKind::parameter || state.held_by != HeldBy::checkpoint) continue;
    const bool trains = new_layers.contains(state.name) ||
                        std::any_of(trained.begin(), trained.end(),
                                    [&](const Selector& s) { return names.covers(s, state); });
    if (trains && state.trainable) continue;
    if (state.trainable) state.reason = "frozen: parameters.lora trains adapters instead";
    state.trainable = false;
    state.held_by = HeldBy::model;
  }
  return graph;
}

/// Adds the parts of the adapters as states.
void add_parts(GraphBuilder& g, const DrawUniform& draw, const State& state,
               AdapterValues& adapter) {
  const AdaptedWeight& weight = adapter.weight;
  for (const AdapterPart& part : weight.rule.kind().parts) {
    State added;
    added.name = weight.state_of(part.name);
    added.path = weight.path + added.name.substr(weight.name.size());
    added.trainable = true;
    added.reason = "adapter of " + weight.path;
    added.start = part.start(weight, state.start, draw);
    added.starts_at_zero = part.starts_at_zero;
    adapter.parts.push_back(g.state(std::move(added)));
  }
}

}  // namespace

Graph add_lora(const Graph& graph, const OperatorSet& operators, const LoraRequest& request) {
  const std::vector<AdaptedWeight> weights = adapted_weights(graph, request.rules);
  const Graph base = frozen_but(graph, request.train, request.new_layers);
  const auto readers = readers_of(base);
  GraphRewrite to(base, operators);
  std::vector<AdapterValues> all;
  std::map<std::int32_t, std::size_t> products;  // by node, places in `all`
  for (const AdaptedWeight& weight : weights) {
    const State& state = *base.find_state(weight.name);
    for (const WeightReader& reader : readers_of_weight(base, readers, state))
      products[reader.node.index] = all.size();
    all.push_back({weight, request.training, to.mapped(state.initial)});
    add_parts(to.builder(), request.draw, state, all.back());
  }
  for (std::size_t i = 0; i < base.nodes.size(); ++i) {
    const NodeId id{static_cast<std::int32_t>(i)};
    if (!to.is_live(id)) continue;
    const auto product = products.find(id.index);
    if (product == products.end())
      to.copy(id);
    else
      all[product->second].weight.rule.kind().add(to, id, all[product->second]);
  }
  return to.finish();
}

HostTensor merged_weight(const AdaptedWeight& weight, const HostTensor& w,
                         const std::vector<HostTensor>& parts) {
  assert(w.type().shape == weight.type.shape);
  HostTensor sum = w.converted(DType::float64).clone();
  weight.rule.kind().merge(weight, sum.as<double>(), parts);
  return sum.converted(w.dtype());
}

}  // namespace tandem
