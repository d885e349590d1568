#include "engine/train/updates/parameter_choice.h"

#include <algorithm>

#include "engine/config/keys/config_names.h"
#include "engine/config/keys/config_value.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/shard_conversion.h"
#include "engine/graph/text.h"
#include "engine/operators/tables/table_nodes.h"
#include "engine/operators/update_kind.h"
#include "engine/train/programs/freeze_rules.h"
#include "engine/train/updates/add_update.h"

namespace tandem {
namespace {

/// Every selector must cover at least one parameter.
class Selectors {
 public:
  explicit Selectors(const Graph& graph) : names(graph), graph_(graph) {}

  Selector parse(const std::string& text, const Where& where) {
    Selector selector(text);
    const bool any = std::any_of(graph_.states.begin(), graph_.states.end(), [&](const State& s) {
      return s.kind == StateKind::parameter && names.covers(selector, s);
    });
    if (any) return selector;
    problems.push_back(at(where, "", "\"" + text + "\" matches no parameter", "", "",
                          names.no_match_fix(text, graph_)));
    return selector;
  }

  const ParameterNames names;
  std::vector<Diagnostic> problems;

 private:
  const Graph& graph_;
};

// `frozen`: the rules that hold in this step.
[[noreturn]] void refuse_nothing_to_train(const RunConfig& config, const Graph& graph,
                                          const std::vector<const FreezeRule*>& frozen) {
  const bool any = std::any_of(graph.states.begin(), graph.states.end(), [](const State& state) {
    return state.kind == StateKind::parameter && state.trainable;
  });
  if (!any || frozen.empty()) {
    Diagnostic d = at(config.model.where, "", "nothing to train: no parameter is trainable");
    d.fix = "`tandem inspect MODEL` says why";
    throw Error(ErrorKind::usage, std::move(d));
  }
  const bool later = std::any_of(frozen.begin(), frozen.end(),
                                 [](const FreezeRule* rule) { return rule->until || rule->from; });
  std::vector<Diagnostic> problems;
  for (const FreezeRule* rule : frozen) {
    problems.push_back(at(
        rule->where, "parameters.freeze", "nothing to train: every parameter is frozen", "",
        "\"" + rule->at + "\"" + (rule->until ? " until " + to_string(*rule->until) : "") +
            (rule->from ? " from " + to_string(*rule->from) : ""),
        later ? "leave a parameter out of parameters.freeze: each step must train one, also before "
                "an `until` and after a `from`"
              : "leave a parameter out of parameters.freeze"));
  }
  throw Error(ErrorKind::usage, std::move(problems));
}

// The last one wins; null where only the base covers the parameter.
using Groups = std::vector<std::pair<Selector, const OptimizerGroup*>>;
const OptimizerGroup* group_of(const Groups& groups, const State& parameter,
                               const ParameterNames& names) {
  const OptimizerGroup* last = nullptr;
  for (const auto& [selector, group] : groups) {
    if (names.covers(selector, parameter)) last = group;
  }
  return last;
}

bool only_lookups_read(const Graph& graph, const State& parameter) {
  bool any = false;
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!(node.inputs[i] == parameter.initial)) continue;
      if (!is_row_lookup(node) || i != 0) return false;
      any = true;
    }
  }
  return any;
}

/// The parameters that train in some step: those of `forward` without the rules of `freeze` that
/// begin or end.
std::vector<Chosen> ever_chosen(const RunConfig& config, const Graph& forward) {
  TrainingRequest request;
  request.config = &config;
  request.thawed = thawed_where_most_trains(config.parameters.freeze);
  std::vector<Chosen> chosen = choose_parameters(forward, request);
  std::erase_if(chosen, [](const Chosen& c) { return !c.parameter.derived.is_saved(); });
  return chosen;
}

/// Throws where the last steps have nothing to train: all rules that end have ended, and those that
/// begin have begun.
void check_last_steps(const RunConfig& config, const Graph& forward) {
  TrainingRequest request;
  request.config = &config;
  bool any = false;
  for (const FreezeRule& rule : config.parameters.freeze) {
    request.thawed.push_back(rule.until.has_value());
    any = any || rule.from;
  }
  if (any) choose_parameters(forward, request);
}

/// Parameters whose kind has changed in the same way, at the same key.
struct OtherKind {
  const Chosen* first = nullptr;
  std::string before;
  int parameters = 0;
};

}  // namespace

std::vector<Chosen> choose_parameters(const Graph& graph, const TrainingRequest& request) {
  const RunConfig& config = *request.config;
  Selectors selectors(graph);
  const FreezeRules frozen(config.parameters, selectors.names);
  std::vector<const FreezeRule*> frozen_by;
  Groups groups;
  for (std::size_t i = 0; i < config.parameters.freeze.size(); ++i) {
    const FreezeRule& rule = config.parameters.freeze[i];
    selectors.parse(rule.at, rule.where);
    if (i >= request.thawed.size() || !request.thawed[i]) frozen_by.push_back(&rule);
  }
  for (const OptimizerGroup& group : config.optimizer.groups) {
    groups.emplace_back(selectors.parse(group.at, group.where), &group);
  }
  if (!selectors.problems.empty()) throw Error(ErrorKind::usage, std::move(selectors.problems));

  std::vector<Chosen> chosen;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter || !state.trainable) continue;
    if (frozen.freezes(state, request.thawed)) continue;
    Chosen next{state, config.optimizer.base, config.optimizer.where, "optimizer.kind"};
    const OptimizerGroup* last = group_of(groups, state, selectors.names);
    if (last != nullptr) {
      next.options = last->options;
      next.group = static_cast<int>(last - config.optimizer.groups.data());
      if (last->options.kind != config.optimizer.base.kind) {
        next.where = last->where;
        next.kind_key = "optimizer.groups." + std::to_string(next.group) + ".kind";
      }
    }
    chosen.push_back(std::move(next));
  }
  if (chosen.empty()) refuse_nothing_to_train(config, graph, frozen_by);
  return chosen;
}

std::vector<State> resting_parameters(const Graph& graph, const TrainingRequest& request) {
  const ParameterNames names(graph);
  const FreezeRules rules(request.config->parameters, names);
  std::vector<State> resting;
  for (const State& state : graph.states) {
    if (state.kind == StateKind::parameter && state.trainable && !rules.always_freezes(state) &&
        rules.freezes(state, request.thawed))
      resting.push_back(state);
  }
  return resting;
}

std::vector<std::string> updated_by_rows(const RunConfig& config, const Graph& forward) {
  Groups groups;
  for (const OptimizerGroup& group : config.optimizer.groups)
    groups.emplace_back(Selector(group.at), &group);
  const ParameterNames parameter_names(forward);
  std::vector<std::string> names;
  for (const State& state : forward.states) {
    if (state.kind != StateKind::parameter || !state.trainable) continue;
    const OptimizerGroup* group = group_of(groups, state, parameter_names);
    const UpdateChoice choice = choose_update(
        group != nullptr ? group->options : config.optimizer.base, whole_elements(state));
    const UpdateKind* kind = find_update_kind(choice.op);
    const bool has_fixed =
        std::any_of(config.parameters.fixed_rows.begin(), config.parameters.fixed_rows.end(),
                    [&](const FixedRowsRule& rule) {
                      return parameter_names.covers(Selector(rule.at), state);
                    });
    const bool by_rows =
        has_fixed || ((choice.lazy || choice.takes_rows) && only_lookups_read(forward, state));
    if (by_rows || (kind != nullptr && kind->whole_row)) names.push_back(state.name);
  }
  return names;
}

std::map<std::string, std::string> parameter_kinds(const RunConfig& config, const Graph& forward) {
  std::map<std::string, std::string> kinds;
  check_last_steps(config, forward);
  for (const Chosen& c : ever_chosen(config, forward)) kinds[c.parameter.name] = c.options.name();
  return kinds;
}

void refuse_other_kinds(const std::map<std::string, std::string>& before, const RunConfig& config,
                        const Graph& forward) {
  const std::vector<Chosen> chosen = ever_chosen(config, forward);
  std::vector<OtherKind> others;
  for (const Chosen& c : chosen) {
    const auto then = before.find(c.parameter.name);
    if (then == before.end() || then->second == c.options.name()) continue;
    auto same = std::find_if(others.begin(), others.end(), [&](const OtherKind& other) {
      return other.first->kind_key == c.kind_key && other.before == then->second;
    });
    if (same == others.end()) same = others.insert(same, {&c, then->second});
    ++same->parameters;
  }
  std::vector<Diagnostic> problems;
  for (const OtherKind& other : others) {
    const std::string more =
        other.parameters > 1 ? " and " + std::to_string(other.parameters - 1) + " more" : "";
    const std::string them = other.parameters > 1 ? "them" : "it";
    problems.push_back(
        at(other.first->where, other.first->kind_key,
           "the run has trained \"" + other.first->parameter.path + "\"" + more +
               " with another kind of optimizer, which may not change on resume",
           other.before, std::string(other.first->options.name()),
           "give " + them + " the kind \"" + other.before +
               "\" (optimizer.kind, or that of a group that covers " + them +
               "; lr and other numbers may change), or start a new run without --resume"));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
