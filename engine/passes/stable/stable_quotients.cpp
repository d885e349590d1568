// A quotient that a Where replaces where its divisor is 0, as in sinc, keeps finite gradients: it
// is divided by 1 there.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

/// x where `value` is x or x times a constant.
ValueId without_factor(const Match& match, ValueId value) {
  const Node* mul = match.is(value, "Mul");
  if (mul == nullptr) return value;
  const ValueId x = match.other_where(*mul, [&](ValueId v) { return match.number(v).has_value(); });
  return x ? x : value;
}

/// Where(x == 0, ..., y / x), or y / (c x).
bool is_guarded(const Match& match, const Node& node) {
  if (node.op->name != "Where") return false;
  const Node* equal = match.is(node.inputs[0], "Equal");
  const Node* div = match.is(node.inputs[2], "Div");
  if (equal == nullptr || div == nullptr) return false;
  const ValueId x = match.other_where(*equal, [&](ValueId v) { return match.is_number(v, 0.0); });
  return x && (x == div->inputs[1] || x == without_factor(match, div->inputs[1]));
}

}  // namespace

Graph stable_quotients(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    if (!is_guarded(match, node)) return false;
    const std::vector<NodeId> others{match.producer(node.inputs[2])};
    if (!may_become_one(context, graph, id, others)) return false;
    const Node& div = graph.node(others[0]);
    to.scope_of(id, others);
    GraphBuilder& builder = to.builder();
    const ValueId is_zero = to.mapped(node.inputs[0]), divisor = to.mapped(div.inputs[1]);
    const ValueId one = builder.scalar(1, builder.dtype(divisor));
    const ValueId safe = builder.add_node("Where", {is_zero, one, divisor});
    const ValueId quotient = builder.div(to.mapped(div.inputs[0]), safe);
    to.replace(node.outputs[0],
               builder.add_node("Where", {is_zero, to.mapped(node.inputs[1]), quotient}));
    context.notes.push_back(node.path + ": a quotient without a division by 0");
    return true;
  });
}

}  // namespace tandem
