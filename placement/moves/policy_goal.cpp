#include "placement/moves/policy_goal.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "placement/selectors/fold.h"

namespace tandem {
namespace {

constexpr int any_value = -2;  // in place of the rule

void want(std::vector<AskedCell>& cells, const std::vector<int>& items,
          const std::optional<std::string>& value) {
  for (const int item : items) {
    AskedCell& cell = cells[static_cast<std::size_t>(item)];
    cell = value ? AskedCell{*value, 0} : AskedCell{"", any_value};
  }
}

template <class Columns>
bool are_met(const Columns& wanted, const Columns& asked) {
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (!std::equal(wanted[k].begin(), wanted[k].end(), asked[k].begin(), asked[k].end(),
                    [](const AskedCell& a, const AskedCell& b) {
                      return a.rule == any_value || a.value == b.value;
                    }))
      return false;
  }
  return true;
}

}  // namespace

MovedValues spread_on(const MovedValues& set) {
  MovedValues all;
  for (const auto& [key, value] : set) {
    if (key != "on") {
      all.emplace_back(key, value);
      continue;
    }
    for (const std::string_view part : parts_of_on) all.emplace_back(part, value);
  }
  return all;
}

Policy PolicyTexts::policy(const std::string& text) const {
  std::vector<Diagnostic> ignored;  // `PolicyText::finish` compares them
  return parse_policy(text, path_, {}, &ignored);
}

AskedValues PolicyTexts::asked(const std::string& text) const {
  return asked_values(policy(text), model_.graph, model_.items, model_.default_device);
}

RuleMatches PolicyTexts::matches(const std::vector<std::string>& selectors) const {
  RuleMatches all;
  const RuleMatcher matcher(model_.graph, model_.items);
  for (const std::string& at : selectors) {
    PolicyRule rule;
    rule.at = Selector(at);
    const RuleMatches some = matcher.match(rule);
    all.operators.insert(all.operators.end(), some.operators.begin(), some.operators.end());
    all.parameters.insert(all.parameters.end(), some.parameters.begin(), some.parameters.end());
  }
  for (std::vector<int>* list : {&all.operators, &all.parameters}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return all;
}

std::string PolicyTexts::selector_of(const RuleMatches& all) const {
  std::vector<std::string> names;
  std::vector<int> labels;
  for (const PolicyItems::Operator& item : model_.items.operators) names.push_back(item.path);
  labels.resize(names.size());
  for (const int item : all.operators) labels[static_cast<std::size_t>(item)] = 1;
  if (all.operators.empty()) {
    names.clear();
    for (const PolicyItems::Parameter& item : model_.items.parameters) {
      const State& state = model_.graph.states[static_cast<std::size_t>(item.state)];
      names.push_back(state.path.empty() ? state.name : state.path);
    }
    labels.assign(names.size(), 0);
    for (const int item : all.parameters) labels[static_cast<std::size_t>(item)] = 1;
  }
  std::string at;
  for (const Folded& fold : folded(names, labels)) {
    if (fold.label != 1) continue;
    if (!at.empty()) return "";
    at = fold.at;
  }
  return at;
}

PolicyGoal::PolicyGoal(const AskedValues& before, const RuleMatches& moved, const MovedValues& set)
    : wanted_(before) {
  for (const auto& [key, value] : spread_on(set)) {
    for (std::size_t k = 0; k < operator_keys.size(); ++k)
      if (key == operator_keys[k]) want(wanted_.operators[k], moved.operators, value);
    for (std::size_t k = 0; k < parameter_keys.size(); ++k)
      if (key == parameter_keys[k]) want(wanted_.parameters[k], moved.parameters, value);
  }
}

bool PolicyGoal::is_met_by(const AskedValues& asked) const {
  return are_met(wanted_.operators, asked.operators) &&
         are_met(wanted_.parameters, asked.parameters);
}

}  // namespace tandem
