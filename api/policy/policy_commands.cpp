// `tandem policy names`, `check`, `explain`, `plan` and `diff`, which open a case and print reports
// of the placement.
#include "api/policy/policy_case.h"
#include "engine/graph/error.h"
#include "placement/names.h"
#include "placement/report/check.h"
#include "placement/report/data_sheets.h"
#include "placement/report/diff.h"
#include "placement/report/explain.h"
#include "placement/report/json.h"
#include "placement/report/plan.h"
#include "placement/report/policy_schema.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

NameOrder order_of(const std::string& sort) {
  if (sort == "graph") return NameOrder::graph;
  if (sort == "path") return NameOrder::path;
  if (sort == "op") return NameOrder::op;
  if (sort == "bytes") return NameOrder::bytes;
  throw Error(ErrorKind::usage, Diagnostic{.message = "there is no such order",
                                           .expected = "graph, path, op or bytes",
                                           .got = sort});
}

/// Names do not depend on a policy, not even on a wrong one.
std::vector<NameRow> names_of(const PolicyOptions& options, const std::string& at,
                              const std::string& sort) {
  NameOptions wanted;
  wanted.order = order_of(sort);
  wanted.at = at;
  PolicyCase of(options, {.policy = false});
  wanted.raw_names = of.imported().raw_names;
  std::vector<NameRow> rows = tandem::policy_names(of.imported().graph, wanted);
  for (const OperatorAttributes& op : of.resolved().operators) {
    if (!op.added || (!at.empty() && !Selector(at).matches(op.path))) continue;
    NameRow& row = rows.emplace_back();
    row.path = op.path;
    row.op = "loss";
    row.bytes = 4;  // a float32 scalar
    row.kind = NameKind::added;
  }
  return rows;
}

}  // namespace

std::string policy_schema(const PolicyOptions& options, const std::string& at) {
  return policy_json_schema(names_of(options, at, "graph"));
}

Report policy_names(const PolicyOptions& options, const std::string& at, const std::string& sort) {
  const std::vector<NameRow> rows = names_of(options, at, sort);
  Json list = Json::array();
  for (const NameRow& row : rows) {
    const bool parameter = row.kind == NameKind::parameter || row.kind == NameKind::buffer;
    list.push_back({{"path", row.path},
                    {"op", row.op},
                    {"kind", parameter ? row.op : "operator"},
                    {"shape", row.shape},
                    {"dtype", name_of(row.dtype)},
                    {"bytes", row.bytes},
                    {"raw_name", row.raw_name}});
  }
  return {names_text(rows),
          json_text(Json{{"names", list}, {"counts", counts_json(counts_of(rows))}})};
}

std::vector<std::string> known_accelerators() { return data_sheet_names(); }

Report policy_check(const PolicyOptions& options) {
  PolicyCase of(options, {.data = false});  // the result does not depend on how tables are sent
  return policy_check(of);
}

Report policy_check(PolicyCase& of) {
  const ResolvedPolicy& resolved = of.resolved();
  const Policy& policy = of.policy().policy;
  return {check_text(policy, resolved), check_json(policy, resolved)};
}

Report policy_explain(const PolicyOptions& options, const std::string& name,
                      const std::string& phase) {
  if (!phase.empty() && phase != "forward" && phase != "backward" && phase != "update") {
    throw Error(ErrorKind::usage, Diagnostic{.message = "there is no such phase",
                                             .expected = "forward, backward or update",
                                             .got = phase});
  }
  PolicyCase of(options);
  return policy_explain(of, name, phase);
}

Report policy_explain(PolicyCase& of, const std::string& name, const std::string& phase) {
  const ResolvedPolicy& resolved = of.resolved();
  const Policy& policy = of.policy().policy;
  const PolicyItems items(of.graph(), of.imported().raw_names, added_parts(resolved));
  Explained explained = explain(resolved, items, of.graph(), name);
  const PlannedStep step = of.plan(PlannedPrograms::step);
  add_nodes(resolved, step.micro_batches.back().program.lowered, phase, explained);
  add_costs(step, explained);
  return {explain_text(policy, resolved, explained), explain_json(policy, resolved, explained)};
}

PolicyPlan policy_plan(const PolicyOptions& options) {
  PolicyCase of(options);
  const PlannedStep step = of.plan();
  const ResolvedPolicy& resolved = of.resolved();
  const Policy& policy = of.policy().policy;
  std::vector<Remedy> remedies;
  if (!step.fits()) {
    remedies = find_remedies(resolved, tried_plan(resolved, step), [&](const PolicyRule& rule) {
      TriedPlan tried;
      of.with_rule(rule, [&] { tried = tried_plan(of.resolved(), of.plan()); });
      return tried;
    });
  }
  return {
      {plan_text(policy, resolved, step, remedies), plan_json(policy, resolved, step, remedies)},
      step.fits()};
}

PolicyDiff policy_diff(const PolicyOptions& options, const std::string& a, const std::string& b) {
  PolicyOptions of_a = options, of_b = options;
  if (!a.empty()) of_a.policy = a;
  if (!b.empty()) of_b.policy = b;
  PolicyCase first(of_a), second(of_b);
  first.resolved(),
      second.resolved();  // reports errors in either policy before planning
  const PlannedStep x = first.plan(), y = second.plan();
  PolicyDifference found = difference({first.resolved(), x}, {second.resolved(), y});
  return {{std::move(found.text), std::move(found.json)}, found.differs};
}

}  // namespace tandem::api
