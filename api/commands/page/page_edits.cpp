#include "api/commands/page/page_edits.h"

#include "api/commands/page/request_body.h"
#include "placement/edit.h"
#include "placement/edit_check.h"
#include "placement/moves/move_items.h"

namespace tandem::api {
namespace {

using Values = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::string words_of(const std::string& what, const Values& set) {
  std::string words = what;
  for (const auto& [key, value] : set)
    words += key == "on" && value ? " on " + *value
                                  : " " + key + " = " + value.value_or("as others say");
  return words;
}

ItemMove move_of(const PageJson& json, const ModelTree& tree) {
  const RequestBody body(json, {"items", "set"});
  ItemMove move;
  for (const int item : body.integers("items")) {
    if (item < 0 || static_cast<std::size_t>(item) >= tree.items().size())
      bad_request("items: there is no such item");
    move.at.push_back(tree.items()[static_cast<std::size_t>(item)].at);
  }
  move.set = body.values("set");
  if (move.at.empty() || move.set.empty()) bad_request("place: items and set must not be empty");
  return move;
}

std::vector<std::pair<std::string, std::string>> required(const Values& values) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [key, value] : values) {
    if (!value) bad_request(key + ": a text is expected");
    all.emplace_back(key, *value);
  }
  return all;
}

PolicyEdit rule_edit(const PageJson& json) {
  const RequestBody body(json, {"at", "filters", "set", "clear", "remove"});
  PolicyEdit edit;
  edit.at = body.text("at");
  if (body.has("filters")) edit.filters = required(body.values("filters"));
  if (body.has("set")) edit.set = required(body.values("set"));
  if (body.has("clear")) edit.clear = body.texts("clear");
  if (body.has("remove")) edit.remove = body.flag("remove");
  if (edit.set.empty() && edit.clear.empty() && !edit.remove)
    bad_request("rule: something to set, to clear or to remove is expected");
  return edit;
}

/// Throws Error{usage} where the rule means nothing in the model.
void check_new_rule(const std::string& rule, const std::string& path, PlannedPolicy& planned) {
  const PolicyRules given = policy_of_arguments({rule}).rules;  // refuses what is no rule
  std::vector<std::string> keys;
  for (const auto& [key, where] : given.at(0).keys) keys.push_back(key);
  check_rule(given[0], keys, path, {planned.graph(), planned.items(), planned.of().resolved()});
}

std::pair<std::string, std::string> with_proposed(const EditedPolicy& policy,
                                                  const std::vector<int>& taken,
                                                  const std::optional<ProposedRules>& proposal) {
  const std::size_t most =
      proposal ? changes_to(*proposal, policy.text(), policy.path()).size() : 0;
  for (const int change : taken) {
    if (change < 0 || static_cast<std::size_t>(change) >= most)
      bad_request("proposed: there is no such change");
  }
  if (taken.empty()) bad_request("proposed: must not be empty");
  return {with_changes(*proposal, policy.text(), policy.path(), taken), "took over the search"};
}

}  // namespace

std::pair<std::string, std::string> edited_text(const EditedPolicy& policy, const PageJson& json,
                                                const ModelTree& tree, PlannedPolicy& planned,
                                                const std::optional<ProposedRules>& proposal) {
  const RequestBody body(json, {"revision", "place", "rule", "add", "proposed"});
  if (body.has("place") + body.has("rule") + body.has("add") + body.has("proposed") != 1)
    bad_request("one of place, rule, add and proposed is expected");
  const std::string &text = policy.text(), &path = policy.path();
  const MovedIn model{planned.graph(), planned.items(),
                      planned.of().policy().options.default_device, policy.saved()};
  if (body.has("place")) {
    const ItemMove move = move_of(body.object("place"), tree);
    const std::string what =
        move.at.size() == 1 ? move.at[0] : std::to_string(move.at.size()) + " items";
    return {move_items(text, path, move, model), words_of(what, move.set)};
  }
  if (body.has("add")) {
    const std::string rule = body.text("add");
    check_new_rule(rule, path, planned);
    return {add_rule(text, path, rule, model), "added " + rule};
  }
  if (body.has("proposed")) return with_proposed(policy, body.integers("proposed"), proposal);
  PolicyEdit edit = rule_edit(body.object("rule"));
  for (const BoundDevice& device : planned.devices())
    if (!device.use.empty() && device.name != "cpu")
      edit.devices.push_back(device.name + "=" + device.use);
  const std::string after = edit_policy(text, path, edit);
  if (!edit.set.empty() && !edit.remove)
    check_edit(after, path, edit, {planned.graph(), planned.items(), planned.of().resolved()});
  return {after, (edit.remove ? "removed " : "rule ") + edit.at};
}

}  // namespace tandem::api
