// Applies what a configuration says about single operators of a model, and makes notices about
// them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/model/model.h"
#include "engine/config/keys/config_value.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/train/programs/freeze_rules.h"

namespace tandem::api {
namespace {

template <class Uses>
void check_rules(const std::vector<ModeRule>& rules, const char* key, const char* what,
                 const Uses& uses, std::vector<Diagnostic>& problems) {
  std::vector<std::string> paths;
  for (const auto& use : uses) paths.push_back(use.path);
  for (const ModeRule& rule : rules) {
    const Selector selector(rule.at);
    const bool any = std::any_of(paths.begin(), paths.end(),
                                 [&](const std::string& path) { return selector.matches(path); });
    if (any || rule.at == "**") continue;
    Diagnostic d = at(rule.where, key, "\"" + rule.at + "\" matches " + what);
    d.expected = paths.empty() ? "a model that has one" : "a selector of " + joined(paths);
    d.fix = did_you_mean(nearest_name(rule.at, paths), "leave the rule out, or correct `at`");
    problems.push_back(std::move(d));
  }
}

/// The state that an input of a node reads, directly or through other operators.
const State* state_behind(const Graph& graph, ValueId value) {
  for (int hops = 0; value && hops < 8; ++hops) {
    for (const State& state : graph.states) {
      if (state.initial == value) return &state;
    }
    const NodeId maker = graph.value(value).producer;
    if (!maker || graph.node(maker).inputs.empty()) return nullptr;
    value = graph.node(maker).inputs[0];
  }
  return nullptr;
}

}  // namespace

void add_model_rules(const RunConfig& config, ImportOptions& options) {
  options.batch_norm = "train";
  for (const ModeRule& rule : config.model.batch_norm)
    options.batch_norm_rules.push_back({rule.at, rule.mode});
  for (const ModeRule& rule : config.model.random)
    options.random_rules.push_back({rule.at, rule.mode});
  for (const TrainRule& rule : config.parameters.train) options.trained_buffers.push_back(rule.at);
}

void ConfiguredModel::refuse_rules_without_operators(const ImportResult& imported) const {
  std::vector<Diagnostic> problems;
  // The model is trained already, and its training has checked this.
  if (options_.in_stages) return;
  check_rules(config_.model.batch_norm, "model.batch_norm", "no BatchNormalization",
              imported.batch_norms, problems);
  check_rules(config_.model.random, "model.random", "no operator that draws random numbers",
              imported.randomness, problems);
  if (config_.parameters.lora.empty()) {
    for (const TrainRule& rule : config_.parameters.train) {
      const Selector selector(rule.at);
      const auto& all = imported.summary.parameters;
      const bool any = std::any_of(all.begin(), all.end(), [&](const ParameterSummary& p) {
        return p.trained_by_rule && selector.covers_parameter(p.path, p.name);
      });
      if (any) continue;
      problems.push_back(at(rule.where, "parameters.train",
                            "everything trains already: there are no adapters, and \"" + rule.at +
                                "\" covers no tensor that was recognised as a buffer",
                            "parameters.lora as well, or such a tensor", "",
                            "leave it out; parameters.freeze says what does not train"));
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

bool ConfiguredModel::is_frozen(const State& state) {
  if (state.kind != StateKind::parameter) return false;
  const ParameterNames names(micro_batch().graph);
  return !state.trainable || FreezeRules(config_.parameters, names).always_freezes(state);
}

// Warns of moving statistics in layers whose own parameters are frozen: freezing a part of a
// network seldom means that its statistics should follow the new data.
void ConfiguredModel::add_moving_statistics(std::vector<ModelNotice>& notices) {
  const ImportResult& model = micro_batch();
  std::vector<std::string> paths;
  bool file_keeps = true;  // those layers are in inference form in the file
  for (const Node& node : model.graph.nodes) {
    if (node.op->name != "BatchNormalizationTraining") continue;
    const State* scale = state_behind(model.graph, node.inputs[1]);
    const State* bias = state_behind(model.graph, node.inputs[2]);
    const bool frozen =
        (scale != nullptr && is_frozen(*scale)) && (bias == nullptr || is_frozen(*bias));
    if (!frozen) continue;
    paths.push_back(node.path);
    for (const BatchNormUse& use : model.batch_norms) {
      if (use.path == node.path) file_keeps = file_keeps && !use.file_trains;
    }
  }
  if (paths.empty()) return;
  // Where a rule of `freeze` covers a layer, its selector is used for the statistics too.
  std::set<std::string> selectors;
  for (const std::string& path : paths) {
    std::string chosen = path;
    for (const FreezeRule& rule : config_.parameters.freeze) {
      if (Selector(rule.at).matches(path)) chosen = rule.at;
    }
    selectors.insert(chosen);
  }
  std::string rules;
  for (const std::string& at : selectors)
    rules +=
        fmt::format("{}{{ at = \"{}\", mode = \"inference\" }}", rules.empty() ? "" : ", ", at);
  ModelNotice notice{"moving_statistics"};
  notice.names = paths;
  notice.is_warning = true;
  notice.text = fmt::format(
      "the parameters of {}{} are frozen, but the running statistics still change with every batch",
      paths[0], paths.size() == 1 ? "" : fmt::format(" and {} more", paths.size() - 1));
  notice.fix = fmt::format("model.batch_norm = [ {} ] keeps them{}", rules,
                           file_keeps ? ", and so does \"file\", as the file has them" : "");
  notices.push_back(std::move(notice));
}

std::vector<ModelNotice> ConfiguredModel::notices() {
  if (has_training_info(file_)) return {};
  const ImportResult& model = micro_batch();
  std::vector<ModelNotice> notices = model_notices(model, [&](const ParameterSummary& p) {
    const State* state = model.graph.find_state(p.name);
    return state != nullptr && is_frozen(*state);
  });
  add_moving_statistics(notices);
  if (std::string text = stored().summary(); !text.empty())
    notices.push_back(
        {.kind = "packed_weights", .text = std::move(text), .names = stored().errors()});
  return notices;
}

}  // namespace tandem::api
