// Log of what vanishes or overflows where its logarithm does not, and x - log(sum(exp(x))), become
// Softplus, LogSoftmax and sums of shifted exponentials.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"
#include "engine/passes/stable/logarithm_of.h"

namespace tandem {
namespace {

struct FoundLogSoftmax {
  ValueId x;
  std::int64_t axis = -1;
};

/// x and the axis where the node is x - log(sum(exp(x))) over one axis.
FoundLogSoftmax find_log_softmax(const Match& match, const Node& node) {
  if (node.op->name != "Sub") return {};
  const Graph& graph = match.graph();
  const ValueId x = node.inputs[0];
  ValueId of_rows = node.inputs[1];
  while (const Node* moved = match.is(of_rows, "Expand")) of_rows = moved->inputs[0];
  if (const Node* moved = match.is(of_rows, "Reshape")) of_rows = moved->inputs[0];
  const std::optional<LogSumExp> rows = log_sum_exp(match, of_rows);
  if (!rows || rows->x != x || rows->axes.size() != 1) return {};
  // Each row must subtract its own logarithm.
  Shape kept = graph.type(x).shape;
  const std::int64_t axis = rows->axes[0];
  kept[static_cast<std::size_t>(axis)] = 1;
  ValueId before_expand = node.inputs[1];
  while (const Node* moved = match.is(before_expand, "Expand")) before_expand = moved->inputs[0];
  if (graph.type(before_expand).shape != kept) return {};
  if (graph.type(node.outputs[0]) != graph.type(x)) return {};
  return {x, axis};
}

}  // namespace

Graph stable_logarithms(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const ValueId y = node.outputs.empty() ? ValueId{} : node.outputs[0];
    if (const FoundLogSoftmax found = find_log_softmax(match, node); found.x) {
      const std::vector<NodeId> others = match.interior(y, {found.x});
      if (!may_become_one(context, graph, id, others)) return false;
      to.scope_of(id, others);
      to.replace(y,
                 to.builder().add_node("LogSoftmax", {to.mapped(found.x)}, {{"axis", found.axis}}));
      context.notes.push_back(node.path + ": LogSoftmax");
      return true;
    }
    if (node.op->name != "Log") return false;
    if (const Node* exp = match.is(node.inputs[0], "Exp")) {  // log(exp(x))
      to.scope_of(id);
      to.replace(y, to.builder().add_node("Identity", {to.mapped(exp->inputs[0])}));
      return true;
    }
    const std::optional<StableLogarithm> found = stable_logarithm(match, node.inputs[0]);
    if (!found) return false;
    const std::vector<NodeId> others = match.interior(y, found->leaves);
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    to.replace(y, found->build(to));
    context.notes.push_back(node.path + ": " + found->name);
    return true;
  });
}

}  // namespace tandem
