#include "api/model/stored_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/config/keys/config_names.h"
#include "engine/passes/adapted_weights.h"
#include "engine/passes/adapters/adapter_kind.h"
#include "engine/runtime/file_pages.h"
#include "engine/train/programs/freeze_rules.h"
#include "placement/quantities.h"

namespace tandem::api {
namespace {

template <class Rules>
bool is_covered(const Rules& rules, const State& state, const ParameterNames& names) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const auto& rule) { return names.covers(Selector(rule.at), state); });
}

bool is_matrix(const State& state) {
  return state.kind == StateKind::parameter && state.held_by == HeldBy::checkpoint &&
         is_float(state.start.dtype()) && state.start.dtype() != DType::float64 &&
         state.start.shape().size() == 2;
}

/// Weights whose adapters start with values of the weight, as DoRA's do.
std::set<std::string> weights_with_values(const Graph& graph,
                                          const std::vector<AdapterRule>& rules) {
  const auto needs_values = [](const AdapterRule& rule) {
    const AdapterKind kind = rule.kind();
    return std::any_of(kind.parts.begin(), kind.parts.end(),
                       [](const AdapterPart& part) { return !part.of_weight.empty(); });
  };
  std::set<std::string> names;
  if (std::none_of(rules.begin(), rules.end(), needs_values)) return names;
  for (const AdaptedWeight& weight : adapted_weights(graph, rules)) {
    if (needs_values(weight.rule)) names.insert(weight.name);
  }
  return names;
}

PackedKind kind_of(const StorageRule& rule) { return *packed_kind(choice_name(rule.kind)); }

/// `first` of the parameters that train.
Diagnostic trained_problem(const StorageRule& rule, const State& first, int count) {
  const std::string which =
      count == 1 ? "this one does" : fmt::format("this one and {} more do", count - 1);
  return at(rule.where, first.path,
            "parameters.storage: " + std::string(choice_name(rule.kind)) +
                " is for parameters that do not train, and " + which,
            "a frozen parameter", "",
            "train adapters in its place, parameters.lora, freeze it, parameters.freeze, or let "
            "the rule's selector leave it out");
}

Diagnostic changed_problem(const StorageRule& rule, const State& state) {
  return at(rule.where, state.path,
            "parameters.storage packs the file's values, and parameters.init gives this weight "
            "others",
            "", "", "leave it out of one of the two selectors");
}

Diagnostic unused_problem(const StorageRule& rule, const Graph& graph,
                          const ParameterNames& names) {
  const Selector selector(rule.at);
  const bool any = std::any_of(graph.states.begin(), graph.states.end(), [&](const State& state) {
    return state.kind == StateKind::parameter && names.covers(selector, state);
  });
  if (!any) return no_match(rule.where, "parameters.storage", rule.at, graph);
  return at(rule.where, "",
            "parameters.storage: \"" + rule.at + "\" decides about no matrix that it could pack",
            "parameters of floats with two axes, which no later rule covers", "",
            "correct `at`, or leave the rule out");
}

}  // namespace

const StorageRule* StoredWeights::rule_of(const State& state, const ParameterNames& names) const {
  const StorageRule* last = nullptr;
  for (const StorageRule& rule : config_.parameters.storage) {
    if (names.covers(Selector(rule.at), state)) last = &rule;
  }
  return last;
}

bool StoredWeights::trains(const State& state, const ParameterNames& names,
                           const std::set<std::string>& new_layers) const {
  const ParametersConfig& parameters = config_.parameters;
  if (!state.trainable) return false;
  if (parameters.lora.empty()) return !FreezeRules(parameters, names).always_freezes(state);
  return new_layers.contains(state.name) || is_covered(parameters.train, state, names);
}

void StoredWeights::pack_once(const State& state, const StorageRule& rule) {
  if (packed_.contains(state.name)) return;
  const PackedKind kind = kind_of(rule);
  const std::int64_t block = rule.block > 0 ? rule.block : usual_block(kind);
  packed_.emplace(state.name, pack(state.start, kind, block, state.name));
  paths_[state.name] = state.path;
  drop_large_value(state.start.data(), state.start.bytes());
}

void StoredWeights::apply(Graph& graph, const std::set<std::string>& new_layers) {
  const ParameterNames names(graph);
  const ParametersConfig& parameters = config_.parameters;
  const std::set<std::string> with_values = weights_with_values(graph, parameters.lora);
  std::vector<std::string> widened, narrow;
  std::map<std::string, PackedTensor> packed;
  std::vector<Diagnostic> problems;
  std::set<const StorageRule*> used;
  std::map<const StorageRule*, std::vector<const State*>> trained;
  for (const State& state : graph.states) {
    if (!is_matrix(state)) continue;
    const StorageRule* const rule = rule_of(state, names);
    used.insert(rule);
    const bool is_packed = rule != nullptr && packs(*rule);
    const bool is_trained = trains(state, names, new_layers);
    const bool has_16_bits = is_kept_in_16_bits(graph, state);
    const bool is_changed =
        is_covered(parameters.init, state, names) || is_covered(parameters.load, state, names);
    if (is_packed && is_trained)
      trained[rule].push_back(&state);
    else if (is_packed && is_covered(parameters.init, state, names))
      problems.push_back(changed_problem(*rule, state));
    else if (is_packed)
      pack_once(state, *rule);
    if (is_packed && packed_.contains(state.name)) packed[state.name] = packed_.at(state.name);
    const bool stays_narrow = rule == nullptr && !parameters.lora.empty() && !is_trained &&
                              !is_changed && !with_values.contains(state.name);
    if (has_16_bits && !is_packed) (stays_narrow ? narrow : widened).push_back(state.name);
  }
  for (const auto& [rule, states] : trained)
    problems.push_back(trained_problem(*rule, *states[0], static_cast<int>(states.size())));
  for (const StorageRule& rule : parameters.storage) {
    if (packs(rule) && !used.contains(&rule))
      problems.push_back(unused_problem(rule, graph, names));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  graph = widened_states(std::move(graph), operators_, widened);
  graph = packed_states(graph, operators_, packed, narrow);
}

std::string StoredWeights::summary() const {
  if (packed_.empty()) return "";
  std::size_t before = 0, after = 0;
  double least = packed_.begin()->second.error, most = 0;
  std::string worst;
  for (const auto& [name, tensor] : packed_) {
    before += tensor.from.bytes();
    after += tensor.bytes();
    least = std::min(least, tensor.error);
    if (tensor.error >= most) worst = paths_.at(name);
    most = std::max(most, tensor.error);
  }
  return fmt::format(
      "parameters.storage packs {} {}: {} -> {}, relative error {:.2g} to {:.2g} (largest: {})",
      packed_.size(), packed_.size() == 1 ? "weight" : "weights",
      bytes_text(static_cast<double>(before)), bytes_text(static_cast<double>(after)), least, most,
      worst);
}

std::vector<std::string> StoredWeights::errors() const {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : packed_)
    lines.push_back(fmt::format("{}: {}, error {:.2g}", paths_.at(name),
                                packed_format(tensor.kind).name, tensor.error));
  return lines;
}

}  // namespace tandem::api
