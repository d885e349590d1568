// x log(y) that a Where replaces by 0 where x is 0 keeps finite values and gradients: the logarithm
// there is that of 1, whatever y is.
#include <limits>

#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

struct Product {
  ValueId x, y;           // for x log(y)
  bool is_xlogy = false;  // PyTorch's function, whose slope by x is log(y) at x = 0, too
};

/// Where(x == 0, 0 or x, x log(y)). With Where(IsNaN(y), y, …) around the product it is xlogy, as
/// the dynamo exporter writes it.
Product find_product(const Match& match, const Node& node) {
  if (node.op->name != "Where") return {};
  const Node* equal = match.is(node.inputs[0], "Equal");
  if (equal == nullptr) return {};
  const ValueId x = match.other_where(*equal, [&](ValueId v) { return match.is_number(v, 0.0); });
  if (!x || (node.inputs[1] != x && !match.is_number(node.inputs[1], 0.0))) return {};
  ValueId inner = node.inputs[2];
  bool is_xlogy = false;
  if (const Node* nan = match.is(inner, "Where")) {
    const Node* test = match.is(nan->inputs[0], "IsNaN");
    if (test == nullptr || test->inputs[0] != nan->inputs[1]) return {};
    inner = nan->inputs[2];
    is_xlogy = true;
  }
  const Node* mul = match.is(inner, "Mul");
  if (mul == nullptr || match.graph().type(inner) != match.graph().type(node.outputs[0])) return {};
  for (int i = 0; i < 2; ++i) {
    const Node* log = match.is(mul->inputs[1 - i], "Log");
    if (mul->inputs[i] == x && log != nullptr) return {x, log->inputs[0], is_xlogy};
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
    const auto number = [&](double value) { return builder.scalar(value, dtype); };
    const auto product = [&](ValueId is_limit) {
      const ValueId safe = builder.add_node("Where", {is_limit, number(1), y});
      return builder.mul(x, builder.add_node("Log", {safe}));
    };
    const ValueId is_zero = builder.add_node("Equal", {x, number(0)});
    if (found.is_xlogy) {
      const double infinity = std::numeric_limits<double>::infinity();
      const ValueId has_logarithm =
          builder.add_node("And", {builder.add_node("Greater", {y, number(0)}),
                                   builder.add_node("Less", {y, number(infinity)})});
      const ValueId has_none = builder.add_node("Not", {has_logarithm});
      to.replace(node.outputs[0], product(builder.add_node("And", {is_zero, has_none})));
    } else {
      const ValueId limit = node.inputs[1] == found.x ? x : number(0);
      to.replace(node.outputs[0], builder.add_node("Where", {is_zero, limit, product(is_zero)}));
    }
    context.notes.push_back(node.path + ": x log(y) with its limit at 0");
    return true;
  });
}

}  // namespace tandem
