// x log(y) that a Where replaces by 0 where x is 0 keeps finite gradients: nothing multiplies the
// infinite logarithm of what is not taken.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/stable/stable.h"

namespace tandem {
namespace {

/// x log(y), with the nodes that lead to it.
struct Product {
  ValueId x, y;
};

/// Where(x == 0, 0 or x, x log(y)), perhaps with Where(IsNaN(y), y, …) around the product, as the
/// dynamo exporter writes xlogy.
Product find_product(const Match& match, const Node& node) {
  if (node.op->name != "Where") return {};
  const Node* equal = match.is(node.inputs[0], "Equal");
  if (equal == nullptr) return {};
  const ValueId x = match.other_where(*equal, [&](ValueId v) { return match.is_number(v, 0.0); });
  if (!x || (node.inputs[1] != x && !match.is_number(node.inputs[1], 0.0))) return {};
  ValueId inner = node.inputs[2];
  if (const Node* nan = match.is(inner, "Where")) {
    const Node* test = match.is(nan->inputs[0], "IsNaN");
    if (test == nullptr || test->inputs[0] != nan->inputs[1]) return {};
    inner = nan->inputs[2];
  }
  const Node* mul = match.is(inner, "Mul");
  if (mul == nullptr) return {};
  for (int i = 0; i < 2; ++i) {
    const Node* log = match.is(mul->inputs[1 - i], "Log");
    if (mul->inputs[i] == x && log != nullptr) return {x, log->inputs[0]};
  }
  return {};
}

}  // namespace

Graph stable_entropies(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const Product found = find_product(match, node);
    if (!found.x) return false;
    const std::vector<NodeId> others = match.interior(node.outputs[0], {found.x, found.y});
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    GraphBuilder& builder = to.builder();
    const ValueId x = to.mapped(found.x), y = to.mapped(found.y);
    const DType dtype = builder.dtype(x);
    const ValueId zero = builder.scalar(0, dtype);
    const ValueId is_limit = builder.add_node(
        "And", {builder.add_node("Equal", {x, zero}), builder.add_node("LessOrEqual", {y, zero})});
    const ValueId safe = builder.add_node("Where", {is_limit, builder.scalar(1, dtype), y});
    const ValueId product = builder.mul(x, builder.add_node("Log", {safe}));
    to.replace(node.outputs[0], product);
    context.notes.push_back(node.path + ": x log(y) with its limit at 0");
    return true;
  });
}

}  // namespace tandem
