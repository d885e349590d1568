// If: the branch taken where the condition is known before the run, else both and a choice.
#include <fmt/format.h>

#include "importer/bodies.h"
#include "importer/chosen_rows.h"

namespace tandem::importer::operators {
namespace {

void check_outputs(NodeContext& node, const Body& branch, const char* name) {
  int named = node.node().output_size();
  while (named > 0 && !node.wants(static_cast<std::size_t>(named) - 1)) --named;
  const auto made = branch.output_count();
  if (static_cast<std::size_t>(named) <= made) return;
  node.fail(fmt::format("{} has no output for '{}'", name, node.node().output(named - 1)),
            fmt::format("at most {} output{}", made, made == 1 ? "" : "s"), std::to_string(named),
            "the file is damaged: export the model again");
}

std::vector<Term> run_branch(NodeContext& node, const char* name, const Term* condition) {
  Body branch(node, name);
  check_outputs(node, branch, name);
  if (condition == nullptr) return branch.run({}, "");
  return branch.run_where(*condition, std::string_view(name) == "then_branch", {}, "");
}

}  // namespace

void if_else(NodeContext& node) {
  Session& session = node.session();
  const std::size_t first_node = session.builder.graph().nodes.size();
  const std::size_t reports = session.reports.size();
  if (node.in(0).rows || node.in(0).counts) refuse_chosen_setting(session, "If", node.in(0));
  if (node.in(0).constant) {
    if (node.in(0).type.elements() != 1)
      node.fail("condition", "one boolean", to_string(node.in(0).type));
    const bool taken = node.in(0).constant->number(0) != 0;
    std::vector<Term> results = run_branch(node, taken ? "then_branch" : "else_branch", nullptr);
    for (std::size_t i = 0; i < results.size(); ++i)
      out_of_body(node, i, std::move(results[i]), first_node);
    return;
  }
  node.want({node.in(0)});  // in stages only one branch runs
  const Term condition = scalar_condition(node, node.in(0));
  const StateGuard states(node);
  const std::vector<Term> then = run_branch(node, "then_branch", &condition);
  const std::vector<Term> otherwise = run_branch(node, "else_branch", &condition);
  if (session.reports.size() > reports) return out_bad(node);
  states.check();
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    if (!node.wants(i)) continue;
    const std::string what = fmt::format("output '{}'", node.node().output(static_cast<int>(i)));
    out_of_body(node, i, choose(node, condition, then[i], otherwise[i], what), first_node);
  }
  session.note(node.path(), "both branches are computed in each step, since data decides");
}

}  // namespace tandem::importer::operators
