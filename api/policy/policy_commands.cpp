// `tandem policy names`, `check`, `explain`, `plan` and `diff`, which open a case and print reports
// of the placement.
#include "api/policy/policy_case.h"
#include "api/program/policy_files.h"
#include "engine/graph/error.h"
#include "placement/names.h"
#include "placement/report/check.h"
#include "placement/report/data_sheets.h"
#include "placement/report/diff.h"
#include "placement/report/explain.h"
#include "placement/report/json.h"
#include "placement/report/plan.h"
#include "placement/report/rule_data.h"
#include "placement/selectors/policy_schema.h"

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

PolicyCheck policy_check(PolicyCase& of) { return check_data(of.policy().policy, of.resolved()); }

namespace {

Explained explained_name(PolicyCase& of, const std::string& name) {
  const ResolvedPolicy& resolved = of.resolved();
  const PolicyItems items(of.graph(), of.imported().raw_names, added_parts(resolved));
  return explain(resolved, items, of.graph(), name);
}

Explanation explained_in(PolicyCase& of, const PlannedStep& step, Explained explained,
                         std::optional<Phase> phase) {
  const ResolvedPolicy& resolved = of.resolved();
  add_nodes(resolved, step.micro_batches.back().program.lowered, phase ? phase_name(*phase) : "",
            explained);
  add_costs(step, explained);
  return explanation_of(of.policy().policy, resolved, explained);
}

}  // namespace

Explanation policy_explain(PolicyCase& of, const std::string& name, std::optional<Phase> phase) {
  Explained explained = explained_name(of, name);
  return explained_in(of, of.plan(PlannedPrograms::step), std::move(explained), phase);
}

Explanation policy_explain(PolicyCase& of, const PlannedStep& step, const std::string& name,
                           std::optional<Phase> phase) {
  return explained_in(of, step, explained_name(of, name), phase);
}

Plan policy_plan(PolicyCase& of, const PlannedStep& step) {
  const ResolvedPolicy& resolved = of.resolved();
  std::vector<Remedy> remedies;
  if (!step.fits()) {
    remedies = find_remedies(resolved, tried_plan(resolved, step), [&](const PolicyRule& rule) {
      TriedPlan tried;
      of.with_rule(rule, [&] { tried = tried_plan(of.resolved(), of.plan()); });
      return tried;
    });
  }
  return plan_data(of.policy().policy, resolved, step, remedies);
}

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

inline namespace v1 {

PolicyCheck policy_check(const PolicyOptions& options) {
  PolicyCase of(options, {.data = false});  // the result does not depend on how tables are sent
  return policy_check(of);
}

std::optional<Phase> phase_of(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
    if (name == phase_name(phase)) return phase;
  }
  throw Error(ErrorKind::usage, Diagnostic{.message = "there is no such phase",
                                           .expected = "forward, backward or update",
                                           .got = std::string(name)});
}

Explanation policy_explain(const PolicyOptions& options, const std::string& name,
                           std::optional<Phase> phase) {
  PolicyCase of(options);
  return policy_explain(of, name, phase);
}

Plan policy_plan(const PolicyOptions& options) {
  PolicyCase of(options);
  return policy_plan(of, of.plan());
}

PolicyDiff policy_diff(const PolicyOptions& options, const std::string& a, const std::string& b) {
  PolicyOptions of_a = options, of_b = options;
  if (!a.empty()) of_a.policy = a;
  if (!b.empty()) of_b.policy = b;
  PolicyCase first(of_a), second(of_b);
  first.resolved(),
      second.resolved();  // reports errors in either policy before planning
  const Plan x = plan_data(first.policy().policy, first.resolved(), first.plan());
  const Plan y = plan_data(second.policy().policy, second.resolved(), second.plan());
  return difference({first.resolved(), x}, {second.resolved(), y});
}

}  // namespace v1
}  // namespace tandem::api
