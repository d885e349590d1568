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

/// A node that multiplies by the weight, or what keeps the weight from having adapters.
struct WeightReader {
  NodeId node;
  bool out_first = false;
  std::string refusal;  // "" where it is a product
};

bool swaps_matrix(const Node& node) {
  return node.op->name == "Transpose" && node.attributes.integers("perm") == Ints{1, 0};
}

/// Products that read `value` as their weight; `out_first` where it is the weight's transpose.
void add_readers(const Graph& graph, const std::vector<std::vector<NodeId>>& readers, ValueId value,
                 bool out_first, std::vector<WeightReader>& found) {
  for (const NodeId id : readers[static_cast<std::size_t>(value.index)]) {
    const Node& node = graph.node(id);
    const std::string& op = node.op->name;
    const bool is_weight =
        node.inputs.size() > 1 && node.inputs[1] == value && node.inputs[0] != value;
    const std::size_t rank = graph.type(value).shape.size();
    if (op == "MatMul" && is_weight && rank == 2) {
      found.push_back({id, out_first, ""});
    } else if (op == "Conv" && is_weight && node.attributes.integer("group") == 1) {
      found.push_back({id, true, ""});
    } else if (!out_first && rank == 2 && swaps_matrix(node)) {
      add_readers(graph, readers, node.outputs[0], true, found);
    } else {
      const bool grouped = op == "Conv" && is_weight, stacked = op == "MatMul" && is_weight;
      found.push_back({id, out_first,
                       node.path + " (" + op +
                           (grouped   ? " with groups)"
                            : stacked ? ", over more than a matrix)"
                                      : ")")});
    }
  }
  for (const NamedValue& output : graph.outputs) {
    if (output.value == value) found.push_back({{}, out_first, "the output " + output.name});
  }
}

std::vector<WeightReader> readers_of_weight(const Graph& graph,
                                            const std::vector<std::vector<NodeId>>& readers,
                                            const State& state) {
  std::vector<WeightReader> found;
  add_readers(graph, readers, state.initial, false, found);
  return found;
}

/// Why a parameter cannot have adapters; "" where it can.
std::string refusal_of(const std::vector<WeightReader>& readers) {
  if (readers.empty()) return "nothing reads it";
  for (const WeightReader& reader : readers) {
    if (!reader.refusal.empty()) return "read by " + reader.refusal;
    if (reader.out_first != readers[0].out_first) return "read as it is and transposed";
  }
  return "";
}

Diagnostic lora_problem(const Diagnostic& where, std::string path, std::string message) {
  Diagnostic d = where;
  d.path = std::move(path);
  d.message = std::move(message);
  return d;
}

std::optional<Diagnostic> rank_problem(const AdaptedWeight& weight) {
  const std::int64_t rows = weight.type.shape[0];
  const std::int64_t least = rows == 0 ? 0 : std::min(rows, weight.type.elements() / rows);
  if (weight.rule.rank >= 1 && weight.rule.rank <= least) return std::nullopt;
  Diagnostic d = lora_problem(weight.rule.where, weight.path,
                              "parameters.lora: a rank that this weight does not have");
  d.expected =
      "a rank of 1 to " + std::to_string(least) + " for a weight of " + to_string(weight.type);
  d.got = std::to_string(weight.rule.rank);
  d.fix = weight.rule.rank < 1 ? "leave the rule out to train without adapters"
                               : "lower the rank, or leave this weight out of `at`";
  return d;
}

Diagnostic no_match(const Diagnostic& where, const std::string& key, const std::string& at,
                    const Graph& graph) {
  Diagnostic d = lora_problem(where, "", key + ": \"" + at + "\" matches no parameter");
  d.fix = ParameterNames(graph).no_match_fix(at, graph);
  return d;
}

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

double AdapterRule::scale() const {
  const auto r = static_cast<double>(rank);
  return alpha / (rslora ? std::sqrt(r) : r);
}

TensorType AdaptedWeight::a_type() const {
  Shape shape = type.shape;
  shape[out_first ? 0 : 1] = rule.rank;
  return {type.dtype, std::move(shape)};
}

TensorType AdaptedWeight::b_type() const {
  if (!out_first) return {type.dtype, {rule.rank, type.shape[1]}};
  Shape shape(type.shape.size(), 1);
  shape[0] = type.shape[0];
  shape[1] = rule.rank;
  return {type.dtype, std::move(shape)};
}

std::int64_t AdaptedWeight::fan_in() const {
  return out_first ? type.elements() / std::max<std::int64_t>(type.shape[0], 1) : type.shape[0];
}

std::vector<AdaptedWeight> adapted_weights(const Graph& graph,
                                           const std::vector<AdapterRule>& rules) {
  const auto readers = readers_of(graph);
  const ParameterNames names(graph);
  std::vector<Diagnostic> problems;
  std::map<std::size_t, const AdapterRule*> chosen;  // by state
  std::map<std::size_t, bool> out_first;
  for (const AdapterRule& rule : rules) {
    const Selector selector(rule.at);
    bool any = false, any_product = false;
    std::optional<Diagnostic> refused;  // the first one
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      const State& state = graph.states[s];
      if (state.kind != StateKind::parameter || state.held_by != HeldBy::checkpoint ||
          !names.covers(selector, state))
        continue;
      any = true;
      const std::vector<WeightReader> read_by = readers_of_weight(graph, readers, state);
      const std::string refusal = refusal_of(read_by);
      if (refusal.empty()) {
        any_product = true;
        chosen[s] = &rule;
        out_first[s] = read_by[0].out_first;
      } else if (!refused) {
        refused = lora_problem(rule.where, state.path,
                               "parameters.lora: no product reads this parameter as its weight");
        refused->expected = "the weight of a MatMul, Gemm or Conv without groups";
        refused->got = refusal;
        refused->fix =
            "name a weight of such an operator; parameters.train trains others as "
            "they are";
      }
    }
    if (!any)
      problems.push_back(no_match(rule.where, "parameters.lora", rule.at, graph));
    else if (!any_product)
      problems.push_back(std::move(*refused));
  }
  std::vector<AdaptedWeight> result;
  for (const auto& [s, rule] : chosen) {
    const State& state = graph.states[s];
    AdaptedWeight weight{state.name,      state.path, state.start.type(),
                         out_first.at(s), *rule,      names.further(state)};
    if (std::optional<Diagnostic> problem = rank_problem(weight))
      problems.push_back(std::move(*problem));
    else if (graph.find_state(weight.a()) != nullptr || graph.find_state(weight.b()) != nullptr)
      problems.push_back(lora_problem(rule->where, weight.path,
                                      "parameters.lora: the model has a parameter of the name that "
                                      "an adapter of this one gets"));
    result.push_back(std::move(weight));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return result;
}

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
