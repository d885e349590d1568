#include "placement/move_items.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "engine/graph/text.h"
#include "placement/asked_values.h"
#include "placement/policy_text.h"
#include "placement/selectors/fold.h"
#include "placement/toml_text.h"

namespace tandem {
namespace {

using Values = std::vector<std::pair<std::string, std::optional<std::string>>>;

constexpr std::array<std::string_view, 3> parts_of_on{"run", "param", "state"};
constexpr std::array<std::string_view, 4> remarks{"at", "need", "optional", "why"};

/// `on` as run, param and state.
Values spread(const Values& set) {
  Values all;
  for (const auto& [key, value] : set) {
    if (key != "on") {
      all.emplace_back(key, value);
      continue;
    }
    for (const std::string_view part : parts_of_on) all.emplace_back(part, value);
  }
  return all;
}

/// Texts of one policy that are compared by what they ask for.
class Candidates {
 public:
  Candidates(const std::string& path, const MovedIn& model) : path_(path), model_(model) {}

  Policy policy(const std::string& text) const {
    std::vector<Diagnostic> ignored;  // `PolicyText::finish` compares them
    return parse_policy(text, path_, {}, &ignored);
  }
  AskedValues asked(const std::string& text) const {
    return asked_values(policy(text), model_.graph, model_.items, model_.default_device);
  }
  RuleMatches matches(const std::vector<std::string>& selectors) const {
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
  /// One selector that covers exactly these, or "".
  std::string selector_of(const RuleMatches& all) const {
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

 private:
  std::string path_;
  const MovedIn& model_;
};

/// What a text has to ask for.
class Goal {
 public:
  Goal(const AskedValues& before, const RuleMatches& moved, const Values& set) : wanted_(before) {
    for (const auto& [key, value] : spread(set)) {
      for (std::size_t k = 0; k < operator_keys.size(); ++k)
        if (key == operator_keys[k]) want(wanted_.operators[k], moved.operators, value);
      for (std::size_t k = 0; k < parameter_keys.size(); ++k)
        if (key == parameter_keys[k]) want(wanted_.parameters[k], moved.parameters, value);
    }
  }
  bool is_met_by(const AskedValues& asked) const {
    return equal(wanted_.operators, asked.operators) && equal(wanted_.parameters, asked.parameters);
  }

 private:
  static constexpr int any_value = -2;  // in place of the rule

  static void want(std::vector<AskedCell>& cells, const std::vector<int>& items,
                   const std::optional<std::string>& value) {
    for (const int item : items) {
      AskedCell& cell = cells[static_cast<std::size_t>(item)];
      cell = value ? AskedCell{*value, 0} : AskedCell{"", any_value};
    }
  }
  template <class Columns>
  static bool equal(const Columns& wanted, const Columns& asked) {
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (!std::equal(wanted[k].begin(), wanted[k].end(), asked[k].begin(), asked[k].end(),
                      [](const AskedCell& a, const AskedCell& b) {
                        return a.rule == any_value || a.value == b.value;
                      }))
        return false;
    }
    return true;
  }

  AskedValues wanted_;
};

/// Whether people have written something about the rule: a comment behind it or on the line above.
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

bool sets_something(const ConfigValue& rule) {
  return std::any_of(rule.members.begin(), rule.members.end(), [](const auto& member) {
    const auto is = [&](std::string_view key) { return member.key == key; };
    return !is("op") && !is("min") && !is("after") && !is("before") &&
           std::none_of(remarks.begin(), remarks.end(), is);
  });
}

std::size_t count_of(const ConfigValue* list) { return list == nullptr ? 0 : list->items.size(); }

bool is_within(const std::vector<int>& some, const std::vector<int>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

/// Takes the attributes away from rules that match nothing but what moves. Rules that set nothing
/// any more are removed. `forced`: those with remarks of people, too.
std::string cleared(const std::string& text, const std::string& path, const AskedValues& asked,
                    const RuleMatches& moved, const Values& set, bool forced) {
  PolicyText editor(text, path);
  const ConfigValue tree = editor.tree();
  const std::size_t first = count_of(tree.find("auto")), count = count_of(tree.find("rules"));
  for (std::size_t i = count; i-- > 0;) {
    const RuleMatches& matches = asked.matches[first + i];
    if (!matches.any() || !is_within(matches.operators, moved.operators) ||
        !is_within(matches.parameters, moved.parameters) ||
        !is_within(matches.updates, moved.parameters))
      continue;
    const ConfigValue rule = editor.tree().find("rules")->items[i];
    const Values keys = spread(set);
    const auto sets = [&](std::string_view key) {
      return std::any_of(keys.begin(), keys.end(), [&](const auto& k) { return k.first == key; });
    };
    const bool takes_on = std::all_of(parts_of_on.begin(), parts_of_on.end(), sets);
    bool concerns = false;
    for (const auto& member : rule.members)
      concerns = concerns || sets(member.key) || (member.key == "on" && takes_on);
    if (!concerns || (!forced && has_remark(text, tree.find("rules")->items[i]))) continue;
    for (const auto& member : rule.members)
      if (sets(member.key) || (member.key == "on" && takes_on)) editor.clear(i, member.key);
    if (!sets_something(editor.tree().find("rules")->items[i])) editor.remove(i);
  }
  return editor.finish(text);
}

/// Sets the attributes in the last rule with this selector, or in a new line at the end.
std::string with_values(const std::string& text, const std::string& path, const std::string& at,
                        const Values& set, bool always_new) {
  PolicyText editor(text, path);
  editor.list_start("rules");  // refuses other forms
  editor.add_version();
  PolicyEdit edit;
  edit.at = at;
  std::optional<std::size_t> found;
  if (!always_new) found = editor.find_rule(edit);
  std::string rule = "{ at = " + toml_string(at);
  for (const auto& [key, value] : set) {
    if (!value) continue;
    const std::string toml = rule_value(key, *value);
    rule += ", " + key + " = " + toml;
    if (!found) continue;
    editor.set(*found, key, toml);
    if (key == "on")
      for (const std::string_view part : parts_of_on) editor.clear(*found, std::string(part));
  }
  if (!found) editor.append(rule + " }");
  return editor.finish(text);
}

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

/// Without rules that decide nothing any more, and without those that are not in `kept` and say
/// what holds without them. Rules with remarks stay, and those that decided nothing in `before`.
std::string without_needless(const std::string& text, const std::string& path,
                             const Candidates& candidates, const Goal& goal,
                             const std::string& before, const std::string& kept_rules) {
  const Policy policy = candidates.policy(text), old = candidates.policy(before);
  const std::set<std::string> dead_now = dead_rules(policy, candidates.asked(text)),
                              dead_before = dead_rules(old, candidates.asked(before));
  std::set<std::string> rules_before;
  for (PolicyRule rule : candidates.policy(kept_rules).rules)
    rules_before.insert(to_toml(std::move(rule)));
  std::string kept = text;
  const ConfigValue tree = PolicyText(text, path).tree();
  const std::size_t first = count_of(tree.find("auto"));
  for (std::size_t i = count_of(tree.find("rules")); i-- > 0;) {
    const PolicyRule& rule = policy.rules[first + i];
    const std::string selection = selection_text(rule);
    const bool is_dead = dead_now.contains(selection) && !dead_before.contains(selection);
    if ((!is_dead && rules_before.contains(to_toml(rule))) ||
        has_remark(text, tree.find("rules")->items[i]))
      continue;
    PolicyText editor(kept, path);
    editor.remove(i);
    const std::string without = editor.finish(kept);
    if (goal.is_met_by(candidates.asked(without))) kept = without;
  }
  return kept;
}

/// Takes what moves out of a rule that matches more, where its selector does not grow by that; ""
/// where no rule can be narrowed so.
std::string narrowed(const std::string& text, const std::string& path, const Candidates& candidates,
                     const AskedValues& asked, const RuleMatches& moved, const Goal& goal) {
  PolicyText editor(text, path);
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
    const std::string selector = candidates.selector_of(left);
    if (selector.empty() || selector.size() >= at->text.size()) continue;
    PolicyText narrower(text, path);
    narrower.set(i, "at", toml_string(selector));
    const std::string after = narrower.finish(text);
    if (goal.is_met_by(candidates.asked(after))) return after;
  }
  return "";
}

/// The last two rules as one, where they set the same and one selector covers both.
std::string folded_into_last(const std::string& text, const std::string& path,
                             const Candidates& candidates, const Goal& goal) {
  PolicyText editor(text, path);
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
  const AskedValues asked = candidates.asked(text);
  RuleMatches both;
  for (std::size_t i = asked.matches.size() - 2; i < asked.matches.size(); ++i) {
    const RuleMatches& one = asked.matches[i];
    both.operators.insert(both.operators.end(), one.operators.begin(), one.operators.end());
    both.parameters.insert(both.parameters.end(), one.parameters.begin(), one.parameters.end());
  }
  const std::string at = candidates.selector_of(both);
  if (at.empty()) return text;
  editor.remove(count - 1);
  editor.set(count - 2, "at", toml_string(at));
  const std::string after = editor.finish(text);
  return goal.is_met_by(candidates.asked(after)) ? after : text;
}

}  // namespace

std::string move_items(const std::string& text, const std::string& path, const ItemMove& move,
                       const MovedIn& model) {
  const Candidates candidates(path, model);
  for (const auto& [key, value] : move.set) rule_value(key, value.value_or(""));  // refuses unknown
  const RuleMatches moved = candidates.matches(move.at);
  const AskedValues before = candidates.asked(text);
  const Goal goal(before, moved, move.set);
  const bool only_clears = std::none_of(move.set.begin(), move.set.end(),
                                        [](const auto& each) { return each.second.has_value(); });
  if (!only_clears && goal.is_met_by(before)) return text;
  const std::string bare = cleared(text, path, before, moved, move.set, only_clears);
  if (only_clears || goal.is_met_by(candidates.asked(bare))) return bare;
  const std::string smaller = narrowed(text, path, candidates, before, moved, goal);
  if (!smaller.empty()) return smaller;

  std::vector<std::string> selectors = move.at;
  if (const std::string one = candidates.selector_of(moved); selectors.size() > 1 && !one.empty())
    selectors = {one};
  std::string after;
  for (const auto& [from, always_new] :
       {std::pair(&text, false), std::pair(&bare, true), std::pair(&text, true)}) {
    after = *from;
    for (const std::string& at : selectors)
      after = with_values(after, path, at, move.set, always_new);
    if (goal.is_met_by(candidates.asked(after))) break;
  }
  after = without_needless(after, path, candidates, goal, text, model.kept);
  return folded_into_last(after, path, candidates, goal);
}

std::string add_rule(const std::string& text, const std::string& path, const std::string& rule,
                     const MovedIn& model) {
  const Policy given = policy_of_arguments({rule});  // refuses what is no rule
  PolicyText editor(text, path);
  editor.add_version();
  editor.append(rule);
  const std::string appended = editor.finish(text);
  const Candidates candidates(path, model);
  const AskedValues asked = candidates.asked(appended);
  const Goal goal(asked, {}, {});
  std::vector<Diagnostic> none;
  const ConfigValue tree = *parse_toml("rule = " + rule, "", none).find("rule");
  PolicyEdit same;
  Values set;
  for (const auto& member : tree.members) {
    const bool is_remark = std::find(remarks.begin(), remarks.end(), member.key) != remarks.end();
    if (member.key == "at") same.at = member.value.text;
    if (is_remark) continue;
    if (member.value.kind == ConfigValue::Kind::string)
      set.emplace_back(member.key, member.value.text);
    else
      return appended;
  }
  if (editor.tree().find("rules") == nullptr) return appended;
  for (const auto& [key, value] : set)
    if (key == "op" || key == "min" || key == "after" || key == "before") return appended;
  const std::string in_place = with_values(text, path, same.at, set, false);
  const bool is_enough = goal.is_met_by(candidates.asked(in_place));
  return without_needless(is_enough ? in_place : appended, path, candidates, goal, text,
                          model.kept);
}

}  // namespace tandem
