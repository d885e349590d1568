#include "engine/passes/lora.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>

#include "engine/graph/parameter_names.h"
#include "engine/graph/rewrite.h"
#include "engine/passes/dora.h"

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

/// A weight with the values of what trains for it.
struct Adapted {
  const AdaptedWeight* weight = nullptr;
  ValueId a, b;
  ValueId w, magnitude;  // with dora
  ValueId factor;        // m / ||V||, once a product has needed it
};

/// Adds what trains for the weight as states. `w` is its value in the new graph.
Adapted add_adapters(GraphBuilder& g, const AdaptedWeight& weight, const DrawUniform& draw,
                     const State& state, ValueId w) {
  const auto part = [&](const std::string& name, HostTensor start) {
    State added;
    added.name = name;
    added.path = weight.path + name.substr(weight.name.size());
    added.trainable = true;
    added.reason = "adapter of " + weight.path;
    added.start = std::move(start);
    return added;
  };
  Adapted adapted{&weight, {}, {}, w, {}, {}};
  const double bound = 1 / std::sqrt(static_cast<double>(weight.fan_in()));
  adapted.a = g.state(part(weight.a(), draw(weight.a(), weight.a_type(), bound)));
  State b = part(weight.b(), HostTensor(weight.b_type()));
  b.starts_at_zero = true;
  adapted.b = g.state(std::move(b));
  if (weight.rule.dora)
    adapted.magnitude = g.state(part(weight.magnitude(), weight_norms(weight, state.start)));
  return adapted;
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

/// x as the adapters read it.
ValueId dropped(GraphBuilder& g, ValueId x, const LoraRequest& request, const AdapterRule& rule) {
  const bool drops = request.training && rule.dropout > 0;
  return drops ? g.add_node("Dropout", {x}, {{"ratio", rule.dropout}}) : x;
}

/// The node, plus what the adapters make.
void add_part(GraphRewrite& to, NodeId id, const Adapted& adapted, const LoraRequest& request) {
  GraphBuilder& g = to.builder();
  const Node& node = to.from().node(id);
  to.copy(id);
  const ValueId x = dropped(g, to.mapped(node.inputs[0]), request, adapted.weight->rule);
  const ValueId own = to.mapped(node.outputs[0]);
  g.rename(own, to.from().value(node.outputs[0]).name + "/base");
  const ValueId part = low_rank_product(g, node, *adapted.weight, x, adapted.a, adapted.b);
  to.replace(node.outputs[0], g.add(own, part));
}

/// f (x W + part) + bias, with f = m / ||V|| of engine/passes/dora.h. Only what is added to x W
/// reads x through the dropout, as in PEFT: x W + (f - 1) (dropout(x) W) + f part + bias.
void decompose(GraphRewrite& to, NodeId id, Adapted& adapted, const LoraRequest& request) {
  GraphBuilder& g = to.builder();
  const Node& node = to.from().node(id);
  to.scope_of(id);
  const AdaptedWeight& weight = *adapted.weight;
  if (!adapted.factor)
    adapted.factor =
        magnitude_factor(g, weight, adapted.w, adapted.a, adapted.b, adapted.magnitude);
  const ValueId x = to.mapped(node.inputs[0]), w = to.mapped(node.inputs[1]), f = adapted.factor;
  const auto times_w = [&](ValueId of) {
    return g.add_node(node.op->name, {of, w}, node.attributes);
  };
  const ValueId read = dropped(g, x, request, weight.rule);
  const ValueId part = low_rank_product(g, node, weight, read, adapted.a, adapted.b);
  const ValueId own = times_w(read);
  ValueId y = g.mul(f, g.add(own, part));
  if (!(read == x)) y = g.add(y, g.sub(times_w(x), own));
  if (node.inputs.size() > 2 && node.inputs[2])
    y = g.add(y, g.reshape(to.mapped(node.inputs[2]), g.shape(f)));
  to.replace(node.outputs[0], y);
}

}  // namespace

Graph add_lora(const Graph& graph, const OperatorSet& operators, const LoraRequest& request) {
  const std::vector<AdaptedWeight> weights = adapted_weights(graph, request.rules);
  const Graph base = frozen_but(graph, request.train, request.new_layers);
  const auto readers = readers_of(base);
  GraphRewrite to(base, operators);
  std::vector<Adapted> all;
  std::map<std::int32_t, std::size_t> products;  // by node, places in `all`
  for (const AdaptedWeight& weight : weights) {
    const State& state = *base.find_state(weight.name);
    for (const WeightReader& reader : readers_of_weight(base, readers, state))
      products[reader.node.index] = all.size();
    all.push_back(
        add_adapters(to.builder(), weight, request.draw, state, to.mapped(state.initial)));
  }
  for (std::size_t i = 0; i < base.nodes.size(); ++i) {
    const NodeId id{static_cast<std::int32_t>(i)};
    if (!to.is_live(id)) continue;
    const auto product = products.find(id.index);
    if (product == products.end())
      to.copy(id);
    else if (all[product->second].weight->rule.dora)
      decompose(to, id, all[product->second], request);
    else
      add_part(to, id, all[product->second], request);
  }
  return to.finish();
}

HostTensor merged_weight(const AdaptedWeight& weight, const HostTensor& w, const HostTensor& a,
                         const HostTensor& b, const HostTensor& magnitude) {
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
  if (weight.rule.dora) set_norms(weight, to, magnitude);
  return sum.converted(w.dtype());
}

}  // namespace tandem
