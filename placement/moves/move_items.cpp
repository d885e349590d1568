#include "placement/moves/move_items.h"

#include <algorithm>
#include <array>

#include "engine/graph/text.h"
#include "placement/moves/fewer_rules.h"
#include "placement/moves/policy_goal.h"
#include "placement/policy_text.h"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 4> remarks{"at", "need", "optional", "why"};

bool sets_something(const ConfigValue& rule) {
  return std::any_of(rule.members.begin(), rule.members.end(), [](const auto& member) {
    const auto is = [&](std::string_view key) { return member.key == key; };
    return !is("op") && !is("min") && !is("after") && !is("before") &&
           std::none_of(remarks.begin(), remarks.end(), is);
  });
}

bool is_within(const std::vector<int>& some, const std::vector<int>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

/// Takes the attributes away from rules that match nothing but what moves. Rules that set nothing
/// any more are removed. `forced`: those with remarks of people, too.
std::string cleared(const std::string& text, const std::string& path, const AskedValues& asked,
                    const RuleMatches& moved, const MovedValues& set, bool forced) {
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
    const MovedValues keys = spread_on(set);
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
                        const MovedValues& set, bool always_new) {
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

}  // namespace

std::string move_items(const std::string& text, const std::string& path, const ItemMove& move,
                       const MovedIn& model) {
  const PolicyTexts texts(path, model);
  for (const auto& [key, value] : move.set) rule_value(key, value.value_or(""));  // refuses unknown
  const RuleMatches moved = texts.matches(move.at);
  const AskedValues before = texts.asked(text);
  const PolicyGoal goal(before, moved, move.set);
  const bool only_clears = std::none_of(move.set.begin(), move.set.end(),
                                        [](const auto& each) { return each.second.has_value(); });
  if (!only_clears && goal.is_met_by(before)) return text;
  const std::string bare = cleared(text, path, before, moved, move.set, only_clears);
  if (only_clears || goal.is_met_by(texts.asked(bare))) return bare;
  const std::string smaller = narrowed(text, texts, before, moved, goal);
  if (!smaller.empty()) return smaller;

  std::vector<std::string> selectors = move.at;
  if (const std::string one = texts.selector_of(moved); selectors.size() > 1 && !one.empty())
    selectors = {one};
  std::string after;
  for (const auto& [from, always_new] :
       {std::pair(&text, false), std::pair(&bare, true), std::pair(&text, true)}) {
    after = *from;
    for (const std::string& at : selectors)
      after = with_values(after, path, at, move.set, always_new);
    if (goal.is_met_by(texts.asked(after))) break;
  }
  after = without_needless(after, texts, goal, text, model.kept);
  return folded_into_last(after, texts, goal);
}

std::string add_rule(const std::string& text, const std::string& path, const std::string& rule,
                     const MovedIn& model) {
  const Policy given = policy_of_arguments({rule});  // refuses what is no rule
  PolicyText editor(text, path);
  editor.add_version();
  editor.append(rule);
  const std::string appended = editor.finish(text);
  const PolicyTexts texts(path, model);
  const AskedValues asked = texts.asked(appended);
  const PolicyGoal goal(asked, {}, {});
  std::vector<Diagnostic> none;
  const ConfigValue tree = *parse_toml("rule = " + rule, "", none).find("rule");
  PolicyEdit same;
  MovedValues set;
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
  const bool is_enough = goal.is_met_by(texts.asked(in_place));
  return without_needless(is_enough ? in_place : appended, texts, goal, text, model.kept);
}

}  // namespace tandem
