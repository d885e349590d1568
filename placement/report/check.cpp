#include "placement/report/check.h"

#include <fmt/format.h>

#include "engine/formats/count_text.h"
#include "engine/graph/text.h"
#include "placement/report/json.h"

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

}  // namespace

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

std::string devices_text(const ResolvedPolicy& resolved) {
  const std::vector<ItemCounts> counts = resolved.counts_by_device();
  std::vector<std::string> devices;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t d = (i + 1) % counts.size();  // the cpu comes last
    devices.push_back(resolved.devices[d].name + " " + counts_text(counts[d]));
  }
  return joined(devices, " | ");
}

}  // namespace tandem
