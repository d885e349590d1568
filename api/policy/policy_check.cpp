// `tandem policy names` and `tandem policy check`: what rules may name, and what a policy comes to.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/json.h"
#include "api/policy/planned_step.h"
#include "engine/graph/error.h"
#include "placement/names.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

NameOrder order_of(const std::string& sort) {
  if (sort == "graph") return NameOrder::graph;
  if (sort == "path") return NameOrder::path;
  if (sort == "op") return NameOrder::op;
  if (sort == "bytes") return NameOrder::bytes;
  Diagnostic d;
  d.message = "there is no such order";
  d.expected = "graph, path, op or bytes";
  d.got = sort;
  throw Error(ErrorKind::usage, std::move(d));
}

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

Json check_json(const Policy& policy, const ResolvedPolicy& resolved) {
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
  return {{"ok", true},
          {"rules", rules},
          {"devices", devices},
          {"warnings", warnings},
          {"fell_back", fallen_json(policy, resolved)}};
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

}  // namespace

Report policy_names(const PolicyOptions& options, const std::string& at, const std::string& sort) {
  NameOptions wanted;
  wanted.order = order_of(sort);
  wanted.at = at;
  PolicyCase of(options, true);  // names do not depend on a policy, not even on a wrong one
  wanted.raw_names = of.imported().raw_names;
  std::vector<NameRow> rows = tandem::policy_names(of.imported().graph, wanted);
  for (const OperatorAttributes& op : of.resolved().operators) {
    if (!op.added || (!at.empty() && !Selector(at).matches(op.path))) continue;
    NameRow& row = rows.emplace_back();
    row.path = op.path;
    row.op = "loss";
    row.bytes = 4;  // a float32 scalar
  }
  Json list = Json::array();
  for (const NameRow& row : rows) {
    const bool parameter = row.op == "parameter" || row.op == "buffer";
    list.push_back({{"path", row.path},
                    {"op", row.op},
                    {"kind", parameter ? row.op : "operator"},
                    {"shape", row.shape},
                    {"dtype", name_of(row.dtype)},
                    {"bytes", row.bytes},
                    {"raw_name", row.raw_name}});
  }
  return {names_text(rows), json_text(Json{{"names", list}})};
}

Report policy_check(const PolicyOptions& options) {
  PolicyCase of(options);
  of.leave_data();  // what it says does not depend on how tables are sent
  return policy_check(of);
}

Report policy_check(PolicyCase& of) {
  const ResolvedPolicy& resolved = of.resolved();
  const Policy& policy = of.placing().policy();
  return {check_text(policy, resolved), json_text(check_json(policy, resolved))};
}

}  // namespace tandem::api
