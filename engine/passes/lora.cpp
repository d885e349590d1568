#include "engine/passes/lora.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>

#include "engine/graph/parameter_names.h"
#include "engine/graph/rewrite.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

/// `graph` with everything but `train` frozen.
Graph frozen_but(Graph graph, const std::vector<TrainedRule>& train,
                 const std::set<std::string>& new_layers) {
  const ParameterNames names(graph);
  std::vector<Diagnostic> problems;
  std::vector<Selector> trained;
  for (const TrainedRule& rule : train) {
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

/// Adds both adapters of a weight as states.
std::pair<ValueId, ValueId> add_adapters(GraphBuilder& g, const AdaptedWeight& weight,
                                         const DrawUniform& draw) {
  State a, b;
  a.name = weight.a();
  a.path = weight.path + "/lora_a";
  a.trainable = true;
  a.reason = "adapter of " + weight.path;
  b = a;
  b.name = weight.b();
  b.path = weight.path + "/lora_b";
  a.start = draw(a.name, weight.a_type(), 1 / std::sqrt(static_cast<double>(weight.fan_in())));
  b.start = HostTensor(weight.b_type());
  b.starts_at_zero = true;
  const ValueId first = g.state(std::move(a));
  return {first, g.state(std::move(b))};
}

/// scale (x A) B, as the node multiplies x by W.
ValueId low_rank_product(GraphBuilder& g, const Node& node, const AdaptedWeight& weight, ValueId x,
                         ValueId a, ValueId b) {
  const ValueId scale = g.scalar(weight.rule.scale(), g.dtype(x));
  if (node.op->name == "Conv") {
    const ValueId inner = g.add_node("Conv", {x, a}, node.attributes);
    const std::size_t spatial = weight.type.shape.size() - 2;
    const Ints ones(spatial, 1), zeros(2 * spatial, 0);
    return g.add_node("Conv", {g.mul(inner, scale), b},
                      {{"strides", ones}, {"pads", zeros}, {"dilations", ones}});
  }
  const Ints swap{1, 0};
  if (weight.out_first) {
    const ValueId inner = g.matmul(x, g.transpose(a, swap));
    return g.matmul(g.mul(inner, scale), g.transpose(b, swap));
  }
  return g.matmul(g.mul(g.matmul(x, a), scale), b);
}

}  // namespace

Graph add_lora(const Graph& graph, const OperatorSet& operators, const LoraRequest& request) {
  const std::vector<AdaptedWeight> weights = adapted_weights(graph, request.rules);
  const Graph base = frozen_but(graph, request.train, request.new_layers);
  const auto readers = readers_of(base);
  GraphRewrite to(base, operators);
  GraphBuilder& g = to.builder();
  struct Adapted {
    const AdaptedWeight* weight = nullptr;
    ValueId a, b;
  };
  std::map<std::int32_t, Adapted> products;  // by node
  for (const AdaptedWeight& weight : weights) {
    const auto [a, b] = add_adapters(g, weight, request.draw);
    for (const WeightReader& reader :
         readers_of_weight(base, readers, *base.find_state(weight.name)))
      products[reader.node.index] = {&weight, a, b};
  }
  for (std::size_t i = 0; i < base.nodes.size(); ++i) {
    const NodeId id{static_cast<std::int32_t>(i)};
    if (!to.is_live(id)) continue;
    to.copy(id);
    const auto adapted = products.find(id.index);
    if (adapted == products.end()) continue;
    const auto& [weight, a, b] = adapted->second;
    const Node& node = base.node(id);
    ValueId x = to.mapped(node.inputs[0]);
    if (request.training && weight->rule.dropout > 0)
      x = g.add_node("Dropout", {x}, {{"ratio", weight->rule.dropout}});
    const ValueId own = to.mapped(node.outputs[0]);
    g.rename(own, base.value(node.outputs[0]).name + "/base");
    to.replace(node.outputs[0], g.add(own, low_rank_product(g, node, *weight, x, a, b)));
  }
  return to.finish();
}

HostTensor merged_weight(const AdaptedWeight& weight, const HostTensor& w, const HostTensor& a,
                         const HostTensor& b) {
  assert(w.type().shape == weight.type.shape);
  const HostTensor& left = weight.out_first ? b : a;   // [rows, r]
  const HostTensor& right = weight.out_first ? a : b;  // [r, columns]
  const std::int64_t rows = w.shape()[0], rank = weight.rule.rank;
  const std::int64_t columns = rows == 0 ? 0 : w.type().elements() / rows;
  const HostTensor from = w.converted(DType::float64), l = left.converted(DType::float64),
                   r = right.converted(DType::float64);
  HostTensor sum(TensorType{DType::float64, w.shape()});
  const std::span<const double> ws = from.as<double>(), ls = l.as<double>(), rs = r.as<double>();
  const std::span<double> to = sum.as<double>();
  std::vector<double> line(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    std::fill(line.begin(), line.end(), 0.0);
    for (std::int64_t k = 0; k < rank; ++k) {
      const double factor = ls[static_cast<std::size_t>(i * rank + k)];
      for (std::int64_t j = 0; j < columns; ++j)
        line[static_cast<std::size_t>(j)] += factor * rs[static_cast<std::size_t>(k * columns + j)];
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      to[at] = ws[at] + weight.rule.scale() * line[static_cast<std::size_t>(j)];
    }
  }
  return sum.converted(w.dtype());
}

}  // namespace tandem
