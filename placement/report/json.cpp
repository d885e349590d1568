#include "placement/report/json.h"

#include "placement/report/placement_report.h"

namespace tandem {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Json diagnostic_json(const Diagnostic& d) {
  return {{"file", d.file},       {"line", d.line},         {"column", d.column}, {"path", d.path},
          {"message", d.message}, {"expected", d.expected}, {"got", d.got},       {"fix", d.fix}};
}

Json counts_json(const ItemCounts& counts) {
  return {{"operators", counts.operators},
          {"parameters", counts.parameters},
          {"buffers", counts.buffers},
          {"added", counts.added}};
}

Json rule_json(const Policy& policy, int rule) {
  if (rule < 0) return {};
  const PolicyRule& by = policy.rules[rule];
  return {{"file", by.where.file}, {"line", by.where.line}, {"at", by.at.text()}, {"why", by.why}};
}

Json fallen_json(const Policy& policy, const ResolvedPolicy& resolved) {
  Json rows = Json::array();
  for (const FallenRow& row : fallen_rows(policy, resolved)) {
    rows.push_back({{"path", row.path},
                    {"attribute", row.attribute},
                    {"requested", row.requested},
                    {"actual", row.actual},
                    {"rule", row.rule},
                    {"reason", row.reason}});
  }
  return rows;
}

}  // namespace tandem
