#include "placement/report/check.h"

#include <fmt/format.h>

#include "engine/formats/count_text.h"
#include "engine/graph/text.h"
#include "placement/report/json.h"
#include "placement/report/rule_data.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of_layer(Layer layer) {
  switch (layer) {
    case Layer::builtin:
      return "builtin";
    case Layer::automatic:
      return "auto";
    case Layer::rules:
      return "rules";
    case Layer::command_line:
      return "command line";
  }
  return "";
}

std::string check_json(const Policy& policy, const ResolvedPolicy& resolved) {
  Json rules = Json::array(), warnings = Json::array(), devices = Json::object();
  for (std::size_t r = 0; r < policy.rules.size(); ++r) {
    const PolicyRule& rule = policy.rules[r];
    const RuleUse& use = resolved.rules[r];
    rules.push_back({{"at", rule.at.text()},
                     {"file", rule.where.file},
                     {"line", rule.where.line},
                     {"layer", name_of_layer(rule.layer)},
                     {"decided", use.decided},
                     {"fell_back", use.fallen}});
    rules.back().update(counts_json(use.matched));
  }
  for (const Diagnostic& d : resolved.warnings) warnings.push_back(diagnostic_json(d));
  const std::vector<ItemCounts> counts = resolved.counts_by_device();
  for (std::size_t d = 0; d < counts.size(); ++d) {
    Json& device = devices[resolved.devices[d].name] = {{"use", resolved.devices[d].use}};
    device.update(counts_json(counts[d]));
  }
  return json_text({{"ok", true},
                    {"rules", rules},
                    {"devices", devices},
                    {"warnings", warnings},
                    {"fell_back", fallen_json(policy, resolved)}});
}

std::string check_text(const Policy& policy, const ResolvedPolicy& resolved) {
  std::string text;
  for (const Diagnostic& d : resolved.warnings) text += "warning: " + to_string(d) + "\n";
  for (const Diagnostic& d : resolved.notes) text += "note: " + to_string(d) + "\n";
  for (std::size_t r = 0; r < policy.rules.size(); ++r) {
    const PolicyRule& rule = policy.rules[r];
    const RuleUse& use = resolved.rules[r];
    text +=
        fmt::format("  {:<24} {:<32} {}; decides {} of their attributes{}\n",
                    short_text(rule.where), rule.at.text(), counts_text(use.matched), use.decided,
                    use.fallen > 0 ? fmt::format(", fell back for {}", use.fallen) : "");
  }
  return text + "ok: " + count_text(policy.rules.size(), "rule") + " | " + devices_text(resolved) +
         "\n";
}

}  // namespace

api::PolicyCheck check_data(const Policy& policy, const ResolvedPolicy& resolved) {
  api::PolicyCheck check;
  for (std::size_t r = 0; r < policy.rules.size(); ++r) {
    const PolicyRule& rule = policy.rules[r];
    const RuleUse& use = resolved.rules[r];
    check.rules.push_back({rule.at.text(), rule.where.file, rule.where.line,
                           counts_data(use.matched), use.decided, use.fallen});
  }
  check.problems = resolved.warnings;
  check.text = check_text(policy, resolved);
  check.json = check_json(policy, resolved);
  return check;
}

std::string devices_text(const ResolvedPolicy& resolved) {
  const std::vector<ItemCounts> counts = resolved.counts_by_device();
  std::vector<std::pair<std::string, ItemCounts>> devices;
  for (std::size_t d = 0; d < counts.size(); ++d)
    devices.emplace_back(resolved.devices[d].name, counts[d]);
  return devices_text(devices);
}

std::string devices_text(const std::vector<std::pair<std::string, ItemCounts>>& devices) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& [name, counts] = devices[(i + 1) % devices.size()];  // the cpu comes last
    texts.push_back(name + " " + counts_text(counts));
  }
  return joined(texts, " | ");
}

}  // namespace tandem
