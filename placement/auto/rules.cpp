#include "placement/auto/rules.h"

#include <algorithm>
#include <optional>

#include "placement/selectors/siblings.h"

namespace tandem {
namespace {

bool agree(const AutoChoice& a, const AutoChoice& b) {
  const auto same = [](int x, int y) { return x < 0 || y < 0 || x == y; };
  return a.run == b.run && same(a.param, b.param) && same(a.state, b.state);
}

AutoChoice merged(const AutoChoice& a, const AutoChoice& b) {
  return {a.run, std::max(a.param, b.param), std::max(a.state, b.state)};
}

// The choice that holds after the rule.
AutoChoice after(const AutoChoice& from, const AutoChoice& to) {
  AutoChoice now = to;
  if (now.param < 0) now.param = from.run != to.run ? to.run : from.param;
  if (now.state < 0) now.state = from.run != to.run ? to.run : from.state;
  return now;
}

// For comparing lists: fewer rules are better, then shorter ones.
std::pair<std::size_t, std::size_t> length(const PolicyRules& rules) {
  std::size_t letters = 0;
  for (const PolicyRule& rule : rules) letters += rule.at.text().size();
  return {rules.size(), letters};
}

class RuleWriter {
 public:
  RuleWriter(const AutoGroups& groups, const std::vector<AutoChoice>& choices,
             const std::vector<std::string>& devices)
      : groups_(groups), choices_(choices), devices_(devices) {}

  // The choice of everything in the scope; nothing where choices differ.
  std::optional<AutoChoice> uniform(int scope) const {
    const AutoScope& of = groups_.scopes[scope];
    if (of.group >= 0) return choices_[of.group];
    std::optional<AutoChoice> all;
    for (const int child : of.children) {
      const std::optional<AutoChoice> choice = uniform(child);
      if (!choice || (all && !agree(*all, *choice))) return std::nullopt;
      all = all ? merged(*all, *choice) : *choice;
    }
    return all;
  }

  PolicyRules rules(int scope, const AutoChoice& inherited) const {
    if (const std::optional<AutoChoice> all = uniform(scope)) {
      if (agree(inherited, *all)) return {};
      return {rule_for(selector_of(groups_, scope), inherited, *all)};
    }
    std::vector<AutoChoice> bases{inherited};
    for (const int child : groups_.scopes[scope].children) {
      const std::optional<AutoChoice> all = uniform(child);
      if (all && all->param >= 0 && std::find(bases.begin(), bases.end(), *all) == bases.end())
        bases.push_back(*all);
    }
    std::optional<PolicyRules> best;
    for (const AutoChoice& base : bases) {
      PolicyRules found;
      if (!(base == inherited))
        found.push_back(rule_for(selector_of(groups_, scope), inherited, base));
      add_children(scope, after(inherited, base), found);
      if (!best || length(found) < length(*best)) best = std::move(found);
    }
    return *best;
  }

 private:
  // The rule that turns `from` into `to`.
  PolicyRule rule_for(const std::string& at, const AutoChoice& from, const AutoChoice& to) const {
    const bool moves = from.run != to.run;
    PolicyRule rule;
    rule.at = Selector(at);
    if (moves) rule.run = rule.param = rule.state = devices_[to.run];
    if (to.param >= 0 && to.param != (moves ? to.run : from.param)) rule.param = devices_[to.param];
    if (to.state >= 0 && to.state != (moves ? to.run : from.state)) rule.state = devices_[to.state];
    return rule;
  }

  struct Alike {
    AutoChoice choice;
    std::vector<int> scopes;
  };

  void add_children(int scope, const AutoChoice& base, PolicyRules& to) const {
    std::vector<Alike> exceptions;
    for (const int child : groups_.scopes[scope].children) {
      const std::optional<AutoChoice> all = uniform(child);
      if (!all || agree(base, *all)) continue;
      const auto known = std::find_if(exceptions.begin(), exceptions.end(),
                                      [&](const Alike& a) { return agree(a.choice, *all); });
      if (known == exceptions.end()) {
        exceptions.push_back({*all, {child}});
      } else {
        known->choice = merged(known->choice, *all);
        known->scopes.push_back(child);
      }
    }
    for (const Alike& alike : exceptions) {
      for (const std::string& selector : selectors(scope, alike.scopes))
        to.push_back(rule_for(selector, base, alike.choice));
    }
    for (const int child : groups_.scopes[scope].children) {
      if (uniform(child)) continue;
      for (PolicyRule& rule : rules(child, base)) to.push_back(std::move(rule));
    }
  }

  // Selectors of some children of one scope: ranges of numbers, sets of names.
  std::vector<std::string> selectors(int scope, const std::vector<int>& children) const {
    std::string prefix = scope == 0 ? "" : selector_of(groups_, scope);
    if (prefix.ends_with(".**")) prefix.resize(prefix.size() - 2);
    std::vector<std::string> names, found;
    for (const int child : children) names.push_back(groups_.scopes[child].name);
    for (const PartSet& set : part_sets(names, prefix.size())) {
      const bool whole = std::any_of(
          set.members.begin(), set.members.end(),
          [&](std::size_t member) { return !groups_.scopes[children[member]].children.empty(); });
      found.push_back(prefix + set.text + (whole ? ".**" : ""));
    }
    return found;
  }

  const AutoGroups& groups_;
  const std::vector<AutoChoice>& choices_;
  const std::vector<std::string>& devices_;
};

}  // namespace

PolicyRules auto_rules(const AutoGroups& groups, const std::vector<AutoChoice>& choices,
                       int builtin, const std::vector<std::string>& devices) {
  PolicyRules rules = RuleWriter(groups, choices, devices).rules(0, {builtin, builtin, builtin});
  for (std::size_t g = 0; g < groups.groups.size(); ++g) {
    if (groups.groups[g].parameter.empty()) continue;
    const AutoChoice& choice = choices[g];
    PolicyRule& rule = rules.emplace_back();
    rule.at = Selector(groups.groups[g].parameter);
    rule.param = devices[choice.param < 0 ? choice.run : choice.param];  // below 0: a buffer
    if (choice.state >= 0) rule.state = devices[choice.state];
  }
  return rules;
}

}  // namespace tandem
