#include "engine/passes/adapted_weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/operators/operator.h"
#include "engine/operators/packed/packing.h"
#include "engine/passes/adapters/adapter_kind.h"
#include "engine/passes/head.h"

namespace tandem {
namespace {

bool swaps_matrix(const Node& node) {
  return node.op->name == "Transpose" && node.attributes.integers("perm") == Ints{1, 0};
}

/// Whether the node unpacks the value, or gives the bytes another shape for that.
bool unpacks(const Graph& graph, const std::vector<std::vector<NodeId>>& readers, const Node& node,
             ValueId value) {
  if (node.op->name == "Unpack") return node.inputs[0] == value;
  if (node.op->role != Role::reshape) return false;
  const ValueId bytes = node.outputs[0];
  const auto& next = readers[static_cast<std::size_t>(bytes.index)];
  return !next.empty() && std::all_of(next.begin(), next.end(), [&](NodeId id) {
    return graph.node(id).op->name == "Unpack" && graph.node(id).inputs[0] == bytes;
  });
}

/// Products that read `value` as their weight; `out_first` where it is the weight's transpose.
void add_readers(const Graph& graph, const std::vector<std::vector<NodeId>>& readers, ValueId value,
                 ValueId matrix, bool out_first, std::vector<WeightReader>& found) {
  for (const NodeId id : readers[static_cast<std::size_t>(value.index)]) {
    const Node& node = graph.node(id);
    const std::string& op = node.op->name;
    const bool is_weight =
        node.inputs.size() > 1 && node.inputs[1] == value && node.inputs[0] != value;
    const std::size_t rank = graph.type(value).shape.size();
    if (op == "MatMul" && is_weight && rank == 2) {
      found.push_back({id, out_first, "", matrix});
    } else if (op == "Conv" && is_weight && node.attributes.integer("group") == 1) {
      found.push_back({id, true, "", matrix});
    } else if (!out_first && rank == 2 && swaps_matrix(node)) {
      add_readers(graph, readers, node.outputs[0], matrix, true, found);
    } else if (unpacks(graph, readers, node, value)) {
      add_readers(graph, readers, node.outputs[0], node.outputs[0], out_first, found);
    } else {
      const bool grouped = op == "Conv" && is_weight, stacked = op == "MatMul" && is_weight;
      found.push_back({id, out_first,
                       node.path + " (" + op +
                           (grouped   ? " with groups)"
                            : stacked ? ", over more than a matrix)"
                                      : ")"),
                       matrix});
    }
  }
  for (const NamedValue& output : graph.outputs) {
    if (output.value == value)
      found.push_back({{}, out_first, "the output " + output.name, matrix});
  }
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

std::optional<Diagnostic> rank_problem(const AdaptedWeight& weight) {
  const std::int64_t rows = weight.type.shape[0];
  const std::int64_t least = rows == 0 ? 0 : std::min(rows, weight.type.elements() / rows);
  if (weight.rule.rank >= 1 && weight.rule.rank <= least) return std::nullopt;
  return at(
      weight.rule.where, weight.path, "parameters.lora: a rank that this weight does not have",
      "a rank of 1 to " + std::to_string(least) + " for a weight of " + to_string(weight.type),
      std::to_string(weight.rule.rank),
      weight.rule.rank < 1 ? "leave the rule out to train without adapters"
                           : "lower the rank, or add a rule with a lower one for this weight");
}

/// Parts that start with values of the weight need these as floats.
std::optional<Diagnostic> packed_problem(const AdaptedWeight& weight) {
  if (!weight.is_packed) return std::nullopt;
  const AdapterKind kind = weight.rule.kind();
  for (const AdapterPart& part : kind.parts) {
    if (part.of_weight.empty()) continue;
    return at(weight.rule.where, weight.path,
              "parameters.lora: " + std::string(part.of_weight) + ", and this one is packed",
              "a weight of floats", "weights of few bits",
              "leave " + std::string(kind.name) + " out");
  }
  return std::nullopt;
}

}  // namespace

std::vector<WeightReader> readers_of_weight(const Graph& graph,
                                            const std::vector<std::vector<NodeId>>& readers,
                                            const State& state) {
  std::vector<WeightReader> found;
  add_readers(graph, readers, state.initial, state.initial, false, found);
  return found;
}

Diagnostic no_match(const Where& where, const std::string& key, const std::string& selector,
                    const Graph& graph) {
  return at(where, "", key + ": \"" + selector + "\" matches no parameter", "", "",
            ParameterNames(graph).no_match_fix(selector, graph));
}

std::vector<std::string> AdaptedWeight::parts() const {
  std::vector<std::string> names;
  for (const AdapterPart& part : rule.kind().parts) names.push_back(state_of(part.name));
  return names;
}

std::int64_t AdaptedWeight::fan_in() const {
  return out_first ? type.elements() / std::max<std::int64_t>(type.shape[0], 1) : type.shape[0];
}

std::vector<AdaptedWeight> adapted_weights(const Graph& graph,
                                           const std::vector<AdapterRule>& rules) {
  const auto readers = readers_of(graph);
  const ParameterNames names(graph);
  const std::set<std::string> last = weights_of_last_layers(graph);
  std::vector<Diagnostic> problems;
  std::map<std::size_t, const AdapterRule*> chosen;  // by state
  std::map<std::size_t, WeightReader> read_as;
  for (const AdapterRule& rule : rules) {
    const Selector selector(rule.at);
    const bool is_all = rule.at == all_linear;
    bool any = false, any_product = false;
    std::optional<Diagnostic> refused;  // the first one
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      const State& state = graph.states[s];
      const bool is_own = state.held_by == HeldBy::checkpoint || is_packed(state) ||
                          packed_kind_of(state.start.dtype()).has_value();
      if (state.kind != StateKind::parameter || !is_own) continue;
      if (!is_all && !names.covers(selector, state)) continue;
      const std::vector<WeightReader> read_by = readers_of_weight(graph, readers, state);
      const std::string refusal = refusal_of(read_by);
      const bool is_linear = refusal.empty() && graph.type(read_by[0].matrix).rank() == 2;
      if (is_all && (!is_linear || last.contains(state.name))) continue;
      any = true;
      if (refusal.empty()) {
        any_product = true;
        chosen[s] = &rule;
        read_as[s] = read_by[0];
      } else if (!refused) {
        refused = at(rule.where, state.path,
                     "parameters.lora: no product reads this parameter as its weight",
                     "the weight of a MatMul, Gemm or Conv without groups", refusal,
                     "name a weight of such an operator; parameters.train trains others as "
                     "they are");
      }
    }
    if (!any && is_all)
      problems.push_back(
          at(rule.where, "",
             "parameters.lora: the model has no such weight: \"" + std::string(all_linear) + "\"",
             "a MatMul or Gemm before the output layer whose weight nothing else reads", "",
             "name weights with a selector"));
    else if (!any)
      problems.push_back(no_match(rule.where, "parameters.lora", rule.at, graph));
    else if (!any_product)
      problems.push_back(std::move(*refused));
  }
  std::vector<AdaptedWeight> result;
  for (const auto& [s, rule] : chosen) {
    const State& state = graph.states[s];
    const WeightReader& reader = read_as.at(s);
    AdaptedWeight weight{state.name,       state.path, graph.type(reader.matrix),
                         reader.out_first, *rule,      names.further(state),
                         is_packed(state)};
    if (std::optional<Diagnostic> problem = packed_problem(weight))
      problems.push_back(std::move(*problem));
    if (std::optional<Diagnostic> problem = rank_problem(weight))
      problems.push_back(std::move(*problem));
    const std::vector<std::string> parts = weight.parts();
    const bool is_taken = std::any_of(parts.begin(), parts.end(), [&](const std::string& name) {
      return graph.find_state(name) != nullptr;
    });
    if (is_taken)
      problems.push_back(at(rule->where, weight.path,
                            "parameters.lora: the model has a parameter of the name that "
                            "an adapter of this one gets"));
    result.push_back(std::move(weight));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return result;
}

}  // namespace tandem
