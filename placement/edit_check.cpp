#include "placement/edit_check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/graph/text.h"
#include "placement/policy_text.h"

namespace tandem {
namespace {

/// The rule that was set, as the edited text has it; nothing where that cannot be read.
std::optional<PolicyRule> edited_rule(std::string_view after, const std::string& path,
                                      const PolicyEdit& edit) {
  const PolicyText text(after, path);
  const std::optional<std::size_t> index = text.find_rule(edit);
  if (!index) return std::nullopt;
  const ConfigValue tree = text.tree();
  const Where& where = tree.find("rules")->items[*index].where;
  std::vector<Diagnostic> of_other_lines;
  for (const PolicyRule& rule : parse_policy(after, path, {}, &of_other_lines).rules) {
    if (rule.layer == Layer::rules && rule.where.line == where.line &&
        rule.where.column == where.column) {
      return rule;
    }
  }
  return std::nullopt;
}

/// An attribute of rules, and whether something of what a rule matches can have it.
struct Applying {
  const char* key;
  const char* of;  // what kind of item can have it
  bool applies = false;
};

std::vector<Applying> applying(const EditedModel& model, const RuleMatches& found) {
  const bool operators = !found.operators.empty(), updates = !found.updates.empty();
  bool trains = updates, table = false;
  for (const int p : found.parameters) {
    const ParameterAttributes& parameter = model.resolved.parameters[p];
    trains |= parameter.kind == StateKind::parameter;
    table |= parameter.table;
  }
  const bool values = !found.parameters.empty();
  return {{"on", "everything", true},
          {"run", "operators", operators || updates},
          {"param", "parameters and buffers", values},
          {"state", "parameters", trains},
          {"acts", "operators", operators},
          {"lookahead", "operators and parameters", operators || values},
          {"ship", "tables that only lookups read", table},
          {"cache", "tables that only lookups read", table},
          {"shard", "parameters", trains && values}};
}

}  // namespace

ItemCounts check_rule(const PolicyRule& rule, const std::vector<std::string>& keys,
                      const std::string& path, const EditedModel& model) {
  std::vector<Diagnostic> errors;
  const auto report = [&](Diagnostic d) {  // the text is not in the file: no line of it is named
    d.file = path;
    d.line = d.column = 0;
    errors.push_back(std::move(d));
  };
  const RuleMatcher matcher(model.forward, model.items);
  const RuleMatches found = matcher.match(rule);
  const ItemCounts counts = counts_of(model.forward, model.items, found);
  if (!found.any()) {
    if (!rule.optional) report(matcher.explain_nothing(rule));
  } else {
    const std::vector<Applying> all = applying(model, found);
    std::vector<std::string> others;
    for (const Applying& one : all) {
      if (one.applies) others.emplace_back(one.key);
    }
    for (const std::string& key : keys) {
      const auto one =
          std::find_if(all.begin(), all.end(), [&](const Applying& a) { return a.key == key; });
      if (one == all.end() || one->applies) continue;
      Diagnostic d{.message =
                       "`" + key + "` applies to " + one->of + ", and this rule matches none"};
      d.path = rule.at.text();
      d.expected = "one of " + joined(others);
      d.got = key + ", for " + joined(nonzero_counts(counts));
      report(std::move(d));
    }
  }
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  return counts;
}

ItemCounts check_edit(std::string_view after, const std::string& path, const PolicyEdit& edit,
                      const EditedModel& model) {
  const std::optional<PolicyRule> rule = edited_rule(after, path, edit);
  if (!rule) return {};
  std::vector<std::string> keys;
  for (const auto& [key, value] : edit.set) keys.push_back(key);
  return check_rule(*rule, keys, path, model);
}

}  // namespace tandem
