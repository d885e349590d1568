#include "placement/moves/asked_values.h"

namespace tandem {
namespace {

template <class T>
std::optional<std::string> name_if(const std::optional<T>& value) {
  return value ? std::optional(std::string(name_of(*value))) : std::nullopt;
}

void set_cells(std::vector<AskedCell>& cells, const std::vector<int>& items,
               const std::string& value, int rule) {
  for (const int item : items) cells[static_cast<std::size_t>(item)] = {value, rule};
}

/// What holds where no rule says anything: weights are where they are read, states where the
/// weights are.
void fill_defaults(AskedValues& asked, const PolicyItems& items,
                   const std::string& default_device) {
  const auto fill = [](std::vector<AskedCell>& cells, const std::string& value) {
    for (AskedCell& cell : cells) {
      if (cell.rule < 0) cell.value = value;
    }
  };
  fill(asked.operators[0], default_device);
  fill(asked.operators[1], "keep");
  fill(asked.operators[2], "1");
  for (std::size_t p = 0; p < items.parameters.size(); ++p) {
    AskedCell& param = asked.parameters[0][p];
    const std::vector<int>& users = items.parameters[p].users;
    if (param.rule < 0) {
      param.value = users.empty()
                        ? default_device
                        : asked.operators[0][static_cast<std::size_t>(users.front())].value;
    }
    AskedCell& state = asked.parameters[1][p];
    if (state.rule < 0) state.value = param.value;
  }
  fill(asked.parameters[2], "1");
  fill(asked.parameters[3], "auto");
  fill(asked.parameters[4], "");
  fill(asked.parameters[5], "whole");
}

}  // namespace

std::optional<std::string> asked_value(const PolicyRule& rule, std::string_view key) {
  if (key == "run") return rule.run;
  if (key == "param") return rule.param;
  if (key == "state") return rule.state;
  if (key == "acts") return name_if(rule.acts);
  if (key == "ship") return rule.ship;
  if (key == "shard") return rule.shard;
  if (key == "lookahead" && rule.lookahead) return std::to_string(*rule.lookahead);
  if (key == "cache" && rule.cache) return cache_text(*rule.cache);
  return std::nullopt;
}

AskedValues asked_values(const Policy& policy, const Graph& graph, const PolicyItems& items,
                         const std::string& default_device) {
  AskedValues asked;
  for (auto& cells : asked.operators) cells.resize(items.operators.size());
  for (auto& cells : asked.parameters) cells.resize(items.parameters.size());
  const RuleMatcher matcher(graph, items);
  for (std::size_t r = 0; r < policy.rules.size(); ++r) {
    const PolicyRule& rule = policy.rules[r];
    const RuleMatches& matches = asked.matches.emplace_back(matcher.match(rule));
    const int index = static_cast<int>(r);
    for (std::size_t k = 0; k < operator_keys.size(); ++k) {
      if (const auto value = asked_value(rule, operator_keys[k]))
        set_cells(asked.operators[k], matches.operators, *value, index);
    }
    for (std::size_t k = 0; k < parameter_keys.size(); ++k) {
      const auto value = asked_value(rule, parameter_keys[k]);
      if (!value) continue;
      set_cells(asked.parameters[k], matches.parameters, *value, index);
      if (parameter_keys[k] == "state")
        set_cells(asked.parameters[k], matches.updates, *value, index);
    }
  }
  fill_defaults(asked, items, default_device);
  return asked;
}

}  // namespace tandem
