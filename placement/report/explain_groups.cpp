#include "placement/report/explain_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/graph/text.h"
#include "engine/passes/tables/cached_tables.h"
#include "placement/report/json.h"
#include "placement/selectors/fold.h"

namespace tandem {
namespace {

constexpr std::size_t most_lines = 40;     // in the text
constexpr std::size_t most_selectors = 3;  // in a line

/// Sorts what is decided into groups, then gives each its selectors.
class Groups {
 public:
  explicit Groups(const ResolvedPolicy& resolved) {
    for (const OperatorAttributes& op : resolved.operators) operators_.push_back(op.path);
    for (const ParameterAttributes& p : resolved.parameters)
      parameters_.push_back(p.path.empty() ? p.name : p.path);
  }

  /// Adds an item to its group; returns the group's counts.
  ItemCounts& add(bool parameter, int item, const char* attribute, std::string_view value,
                  const Reason& reason) {
    const FallBack* fallen = reason.fallen.empty() ? nullptr : &reason.fallen[0];
    const auto [place, fresh] = known_.try_emplace(
        {reason.rule, parameter, attribute, std::string(value), fallen ? fallen->rule : -1},
        groups_.size());
    if (fresh) {
      ExplainedGroup& made = groups_.emplace_back();
      made.rule = reason.rule;
      made.attribute = attribute;
      made.value = value;
      if (fallen) made.fallen = *fallen;
    }
    ExplainedGroup& group = groups_[place->second];
    group.paths.push_back((parameter ? parameters_ : operators_)[item]);
    std::vector<int>& labels = labels_[{parameter, attribute}];
    labels.resize((parameter ? parameters_ : operators_).size(), -1);
    labels[item] = static_cast<int>(place->second);
    return group.counts;
  }

  /// By rule, none first; operators before parameters.
  std::vector<ExplainedGroup> finish() {
    for (const auto& [column, labels] : labels_) {
      for (Folded& fold : folded(column.first ? parameters_ : operators_, labels))
        groups_[fold.label].at.push_back(std::move(fold.at));
    }
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const auto& a, const auto& b) { return a.rule < b.rule; });
    return std::move(groups_);
  }

 private:
  std::vector<std::string> operators_, parameters_;  // paths of all
  std::vector<ExplainedGroup> groups_;
  std::map<std::tuple<int, bool, std::string, std::string, int>, std::size_t> known_;
  std::map<std::pair<bool, std::string>, std::vector<int>> labels_;  // groups, by attribute
};

void add_operator(const ResolvedPolicy& resolved, int item, Groups& groups) {
  const OperatorAttributes& op = resolved.operators[item];
  const auto add = [&](const char* attribute, std::string_view value, const Reason& reason) {
    groups.add(false, item, attribute, value, reason).add_operator(op.added);
  };
  const bool follows = op.added && op.run.reason.rule < 0;  // it runs where what it reads is made
  add("run", follows ? "follows" : resolved.device_name(op.run.value), op.run.reason);
  if (op.acts.reason.rule >= 0) add("acts", name_of(op.acts.value), op.acts.reason);
  if (op.lookahead.reason.rule >= 0)
    add("lookahead", std::to_string(op.lookahead.value), op.lookahead.reason);
}

void add_parameter(const ResolvedPolicy& resolved, int item, Groups& groups) {
  const ParameterAttributes& p = resolved.parameters[item];
  const auto add = [&](const char* attribute, std::string_view value, const Reason& reason) {
    groups.add(true, item, attribute, value, reason).add_parameter(p.kind);
  };
  add("param", resolved.device_name(p.param.value), p.param.reason);
  if (p.kind == StateKind::parameter)
    add("state", resolved.device_name(p.state.value), p.state.reason);
  if (p.lookahead.reason.rule >= 0)
    add("lookahead", std::to_string(p.lookahead.value), p.lookahead.reason);
  if (p.ship.reason.rule >= 0) add("ship", name_of(p.ship.value), p.ship.reason);
  if (p.cache.reason.rule >= 0)
    add("cache", p.cached.rows ? cache_text(p.cache.value) : "none", p.cache.reason);
  if (p.shard.reason.rule >= 0) add("shard", name_of(p.shard.value), p.shard.reason);
}

/// What a module's path or a selector covers, and the selector that says so.
RuleMatches find_selected(const RuleMatcher& matcher, const std::string& name, std::string& at) {
  PolicyRule rule;
  if (name.find_first_of("*?{") == std::string::npos && !name.starts_with("re:")) {
    rule.at = Selector(at = name + ".**");
    if (RuleMatches found = matcher.match(rule); found.any()) return found;
  }
  rule.at = Selector(at = name);
  return matcher.match(rule);
}

/// "36 forward on gpu, 60 backward on gpu" of the nodes that a rule, or none, decided.
std::string nodes_text(const ResolvedPolicy& resolved, const Explained& explained, int rule) {
  std::map<std::pair<Phase, int>, int> counts;  // by phase and device
  for (const ExplainedNode& node : explained.nodes) {
    if (node.rule == rule) ++counts[{node.row.phase, node.row.device}];
  }
  return joined(counts, ", ", [&](const auto& entry) {
    const auto& [where, count] = entry;
    return fmt::format("{} {} on {}", count, phase_name(where.first),
                       resolved.device_name(where.second));
  });
}

std::string line_text(const Policy& policy, const ResolvedPolicy& resolved,
                      const ExplainedGroup& group) {
  const std::size_t shown = std::min(most_selectors, group.at.size());
  std::string text =
      fmt::format("    {:<10} {:<10} {}: {}", group.attribute, group.value,
                  joined(nonzero_counts(group.counts)), joined(std::span(group.at).first(shown)));
  if (group.at.size() > shown) text += fmt::format(" and {} more", group.at.size() - shown);
  if (group.fallen) {
    text += fmt::format(" (requested {} by {}: {})", resolved.device_name(group.fallen->device),
                        rule_text(policy, group.fallen->rule), group.fallen->because);
  }
  return text;
}

}  // namespace

std::optional<Explained> explain_selected(const ResolvedPolicy& resolved, const PolicyItems& items,
                                          const Graph& forward, const std::string& name) {
  Explained result;
  result.kind = "selector";
  const RuleMatches found = find_selected(RuleMatcher(forward, items), name, result.path);
  if (!found.any()) return std::nullopt;
  result.counts = counts_of(forward, items, found);
  Groups groups(resolved);
  for (const int item : found.operators) {
    add_operator(resolved, item, groups);
    result.readers.push_back(resolved.operators[item].path);
  }
  std::set<int> parameters(found.parameters.begin(), found.parameters.end());
  parameters.insert(found.updates.begin(), found.updates.end());
  for (const int item : parameters) {
    add_parameter(resolved, item, groups);
    const ParameterAttributes& p = resolved.parameters[item];
    if (p.kind == StateKind::parameter) result.parameters.insert(p.name);
    if (p.cached.rows) result.parameters.insert(cached_name(p.name));
  }
  result.groups = groups.finish();
  return result;
}

std::string explained_groups_text(const Policy& policy, const ResolvedPolicy& resolved,
                                  const Explained& explained) {
  std::vector<std::string> lines;
  for (std::size_t g = 0; g < explained.groups.size(); ++g) {
    const ExplainedGroup& group = explained.groups[g];
    if (g == 0 || explained.groups[g - 1].rule != group.rule) {
      std::string head = "  no rule, the default";
      if (group.rule >= 0) {
        const PolicyRule& rule = policy.rules[group.rule];
        head = "  " + rule_text(policy, group.rule) + "  " + selection_text(rule);
        if (!rule.why.empty()) head += "  (" + rule.why + ")";
      }
      lines.push_back(std::move(head));
    }
    lines.push_back(line_text(policy, resolved, group));
    if (g + 1 < explained.groups.size() && explained.groups[g + 1].rule == group.rule) continue;
    const std::string nodes = nodes_text(resolved, explained, group.rule);
    if (!nodes.empty()) lines.push_back(fmt::format("    {:<10} {}", "nodes", nodes));
  }
  std::string text = explained.path + " (" + joined(nonzero_counts(explained.counts)) + ")\n";
  const std::size_t shown = lines.size() > most_lines ? most_lines - 1 : lines.size();
  for (std::size_t i = 0; i < shown; ++i) text += lines[i] + "\n";
  if (shown < lines.size())
    text += fmt::format("  ... and {} more lines: --json has all\n", lines.size() - shown);
  return text;
}

nlohmann::ordered_json explained_groups_json(const Policy& policy, const ResolvedPolicy& resolved,
                                             const Explained& explained) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ExplainedGroup& group : explained.groups) {
    nlohmann::ordered_json& json =
        list.emplace_back(nlohmann::ordered_json{{"rule", rule_json(policy, group.rule)},
                                                 {"attribute", group.attribute},
                                                 {"value", group.value}});
    json["requested"] = group.fallen ? resolved.device_name(group.fallen->device) : group.value;
    json["fell_back"] = group.fallen ? group.fallen->because : "";
    json.update(counts_json(group.counts));
    json["at"] = group.at;
    json["paths"] = group.paths;
  }
  return list;
}

}  // namespace tandem
