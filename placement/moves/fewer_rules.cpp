#include "placement/moves/fewer_rules.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "placement/policy_text.h"
#include "placement/toml_text.h"

namespace tandem {
namespace {

/// Which rules decide nothing, by their selectors and filters.
std::set<std::string> dead_rules(const Policy& policy, const AskedValues& asked) {
  std::vector<char> decides(policy.rules.size(), 0);
  const auto look = [&](const auto& columns) {
    for (const auto& cells : columns) {
      for (const AskedCell& cell : cells)
        if (cell.rule >= 0) decides[static_cast<std::size_t>(cell.rule)] = 1;
    }
  };
  look(asked.operators);
  look(asked.parameters);
  std::set<std::string> dead;
  for (std::size_t r = 0; r < policy.rules.size(); ++r) {
    if (decides[r] == 0) dead.insert(selection_text(policy.rules[r]));
  }
  return dead;
}

}  // namespace

std::size_t count_of(const ConfigValue* list) { return list == nullptr ? 0 : list->items.size(); }

bool has_remark(const std::string& text, const ConfigValue& rule) {
  if (rule.find("why") != nullptr) return true;
  const std::size_t start = offset_of(text, rule.where);
  if (start == std::string::npos) return true;
  const std::size_t end = end_of_value(text, start);
  if (text.substr(end, after_line(text, end) - end).find('#') != std::string::npos) return true;
  const std::size_t line = start_of_line(text, start);
  if (line == 0) return false;
  const std::size_t above = start_of_line(text, line - 1);
  const std::size_t first = text.find_first_not_of(" \t", above);
  return first != std::string::npos && first < line && text[first] == '#';
}

std::string without_needless(const std::string& text, const PolicyTexts& texts,
                             const PolicyGoal& goal, const std::string& before,
                             const std::string& kept) {
  const Policy policy = texts.policy(text), old = texts.policy(before);
  const std::set<std::string> dead_now = dead_rules(policy, texts.asked(text)),
                              dead_before = dead_rules(old, texts.asked(before));
  std::set<std::string> rules_before;
  for (PolicyRule rule : texts.policy(kept).rules) rules_before.insert(to_toml(std::move(rule)));
  std::string left = text;
  const ConfigValue tree = PolicyText(text, texts.path()).tree();
  const std::size_t first = count_of(tree.find("auto"));
  for (std::size_t i = count_of(tree.find("rules")); i-- > 0;) {
    const PolicyRule& rule = policy.rules[first + i];
    const std::string selection = selection_text(rule);
    const bool is_dead = dead_now.contains(selection) && !dead_before.contains(selection);
    if ((!is_dead && rules_before.contains(to_toml(rule))) ||
        has_remark(text, tree.find("rules")->items[i]))
      continue;
    PolicyText editor(left, texts.path());
    editor.remove(i);
    const std::string without = editor.finish(left);
    if (goal.is_met_by(texts.asked(without))) left = without;
  }
  return left;
}

std::string narrowed(const std::string& text, const PolicyTexts& texts, const AskedValues& asked,
                     const RuleMatches& moved, const PolicyGoal& goal) {
  PolicyText editor(text, texts.path());
  const ConfigValue tree = editor.tree();
  const std::size_t first = count_of(tree.find("auto"));
  const auto without = [](const std::vector<int>& all, const std::vector<int>& some) {
    std::vector<int> left;
    std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(left));
    return left;
  };
  for (std::size_t i = count_of(tree.find("rules")); i-- > 0;) {
    const ConfigValue& rule = tree.find("rules")->items[i];
    RuleMatches left;
    left.operators = without(asked.matches[first + i].operators, moved.operators);
    left.parameters = without(asked.matches[first + i].parameters, moved.parameters);
    const ConfigValue* at = rule.find("at");
    if (!left.any() || at == nullptr || has_remark(text, rule)) continue;
    const std::string selector = texts.selector_of(left);
    if (selector.empty() || selector.size() >= at->text.size()) continue;
    PolicyText narrower(text, texts.path());
    narrower.set(i, "at", toml_string(selector));
    const std::string after = narrower.finish(text);
    if (goal.is_met_by(texts.asked(after))) return after;
  }
  return "";
}

std::string folded_into_last(const std::string& text, const PolicyTexts& texts,
                             const PolicyGoal& goal) {
  PolicyText editor(text, texts.path());
  const ConfigValue tree = editor.tree();
  const std::size_t count = count_of(tree.find("rules"));
  if (count < 2) return text;
  const ConfigValue& last = tree.find("rules")->items[count - 1];
  const ConfigValue& before = tree.find("rules")->items[count - 2];
  const auto alike = [&](const ConfigValue& a, const ConfigValue& b) {
    return std::all_of(a.members.begin(), a.members.end(), [&](const auto& member) {
      const ConfigValue* other = b.find(member.key);
      return member.key == "at" || (other != nullptr && other->text == member.value.text &&
                                    other->integer == member.value.integer);
    });
  };
  if (last.members.size() != before.members.size() || !alike(last, before) ||
      has_remark(text, before) || has_remark(text, last))
    return text;
  const AskedValues asked = texts.asked(text);
  RuleMatches both;
  for (std::size_t i = asked.matches.size() - 2; i < asked.matches.size(); ++i) {
    const RuleMatches& one = asked.matches[i];
    both.operators.insert(both.operators.end(), one.operators.begin(), one.operators.end());
    both.parameters.insert(both.parameters.end(), one.parameters.begin(), one.parameters.end());
  }
  const std::string at = texts.selector_of(both);
  if (at.empty()) return text;
  editor.remove(count - 1);
  editor.set(count - 2, "at", toml_string(at));
  const std::string after = editor.finish(text);
  return goal.is_met_by(texts.asked(after)) ? after : text;
}

}  // namespace tandem
