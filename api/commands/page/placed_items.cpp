#include "api/commands/page/placed_items.h"

#include <map>
#include <unordered_map>

#include "api/commands/page/item_costs.h"
#include "placement/report/json.h"

namespace tandem::api {
namespace {

PageJson rule_or_null(const Reason& reason) {
  return reason.rule < 0 ? PageJson() : PageJson(reason.rule);
}

PageJson fallen(const Reason& reason) {
  return reason.fallen.empty() ? PageJson() : PageJson(reason.fallen.front().because);
}

PageJson operator_entry(const OperatorAttributes& op, const OperatorCost& cost,
                        const ResolvedPolicy& resolved) {
  return {{"run", resolved.device_name(op.run.value)},
          {"acts", name_of(op.acts.value)},
          {"rule", rule_or_null(op.run.reason)},
          {"rule_acts", rule_or_null(op.acts.reason)},
          {"forward_ms", cost.forward * 1e3},
          {"backward_ms", cost.backward * 1e3},
          {"kept", cost.kept},
          {"kernel", cost.kernel},
          {"prefer", fallen(op.run.reason)}};
}

PageJson parameter_entry(const ParameterAttributes& parameter, const ParameterCost& cost,
                         const ResolvedPolicy& resolved) {
  return {{"param", resolved.device_name(parameter.param.value)},
          {"state", resolved.device_name(parameter.state.value)},
          {"rule", rule_or_null(parameter.param.reason)},
          {"rule_state", rule_or_null(parameter.state.reason)},
          {"shard", name_of(parameter.shard.value)},
          {"update_ms", cost.update * 1e3},
          {"state_bytes", cost.states}};
}

const char* list_of(Layer layer) {
  return layer == Layer::automatic ? "auto" : layer == Layer::rules ? "rules" : "place";
}

}  // namespace

PageJson placed_items(const ModelTree& tree, PlannedPolicy& planned) {
  const ResolvedPolicy& resolved = planned.of().resolved();
  const ItemCosts costs = item_costs(planned.step(), planned.graph(), planned.items());
  PageJson list = PageJson::array();
  for (const TreeItem& item : tree.items()) {
    const auto index = static_cast<std::size_t>(item.index);
    switch (item.kind) {
      case TreeItem::Kind::module:
        list.emplace_back();
        break;
      case TreeItem::Kind::operation:
      case TreeItem::Kind::added:
        list.push_back(operator_entry(resolved.operators[index], costs.operators[index], resolved));
        break;
      case TreeItem::Kind::parameter:
      case TreeItem::Kind::buffer:
        list.push_back(
            parameter_entry(resolved.parameters[index], costs.parameters[index], resolved));
        break;
    }
  }
  return list;
}

PageJson rules_of(PlannedPolicy& planned) {
  const tandem::Policy& policy = planned.of().policy().policy;
  const ResolvedPolicy* resolved = planned.is_right() ? &planned.of().resolved() : nullptr;
  PageJson list = PageJson::array();
  for (std::size_t r = 0; r < policy.rules.size(); ++r) {
    const PolicyRule& rule = policy.rules[r];
    const bool is_of_file = rule.layer != Layer::command_line;
    PageJson json{{"index", r},
                  {"list", list_of(rule.layer)},
                  {"line", is_of_file ? rule.where.line : 0},
                  {"at", rule.at.text()},
                  {"filters", PageJson::object()},
                  {"set", PageJson::object()},
                  {"why", rule.why},
                  {"text", to_toml(rule)},
                  {"editable", rule.layer == Layer::rules}};
    std::vector<Diagnostic> none;
    const ConfigValue tree = parse_toml("rule = " + to_toml(rule), "", none);
    if (const ConfigValue* written = tree.find("rule")) {
      for (const ConfigValue::Member& member : written->members) {
        const std::string& key = member.key;
        if (key == "at" || key == "why") continue;
        const bool is_filter = key == "op" || key == "min" || key == "after" || key == "before";
        const ConfigValue& value = member.value;
        json[is_filter ? "filters" : "set"][key] =
            value.kind == ConfigValue::Kind::integer   ? PageJson(value.integer)
            : value.kind == ConfigValue::Kind::boolean ? PageJson(value.boolean)
                                                       : PageJson(value.text);
      }
    }
    if (resolved != nullptr && r < resolved->rules.size()) {
      const RuleUse& use = resolved->rules[r];
      json.update(counts_json(use.matched));
      json["decided"] = use.decided;
      json["fell_back"] = use.fallen;
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace tandem::api
