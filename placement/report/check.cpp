#include "placement/report/check.h"

#include <fmt/format.h>

#include "placement/report/json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::string plural(int count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

struct Counts {
  int operators = 0, parameters = 0;
};

std::vector<Counts> counts_of(const ResolvedPolicy& resolved) {
  std::vector<Counts> counts(resolved.devices.size());
  for (const OperatorAttributes& op : resolved.operators) {
    if (!op.added) ++counts[op.run.value].operators;
  }
  for (const ParameterAttributes& p : resolved.parameters) {
    if (p.kind == StateKind::parameter) ++counts[p.param.value].parameters;
  }
  return counts;
}

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
                     {"operators", use.operators},
                     {"parameters", use.parameters},
                     {"decided", use.decided},
                     {"fell_back", use.fallen}});
  }
  for (const Diagnostic& d : resolved.warnings) warnings.push_back(diagnostic_json(d));
  const std::vector<Counts> counts = counts_of(resolved);
  for (std::size_t d = 0; d < counts.size(); ++d) {
    devices[resolved.devices[d].name] = {{"use", resolved.devices[d].use},
                                         {"operators", counts[d].operators},
                                         {"parameters", counts[d].parameters}};
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
    text += fmt::format("  {:<24} {:<32} {}, {}; decides {} of their attributes{}\n",
                        short_text(rule.where), rule.at.text(), plural(use.operators, "operator"),
                        plural(use.parameters, "parameter"), use.decided,
                        use.fallen > 0 ? fmt::format(", fell back for {}", use.fallen) : "");
  }
  text += fmt::format("ok: {}", plural(static_cast<int>(policy.rules.size()), "rule"));
  const std::vector<Counts> counts = counts_of(resolved);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t d = (i + 1) % counts.size();  // the cpu comes last
    text += fmt::format(" | {} {}, {}", resolved.devices[d].name,
                        plural(counts[d].operators, "operator"),
                        plural(counts[d].parameters, "parameter"));
  }
  return text + "\n";
}

}  // namespace tandem
