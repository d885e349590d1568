// A logarithm that is cut off from below keeps the slope 0 where its operand is 0, which zero times
// an infinite slope would make NaN: cross-entropies clamp their logarithms at -100.
#include <algorithm>

#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

struct Cut {
  ValueId logarithm;
  double end = 0;  // what becomes of -infinity
};

Cut find_cut(const Match& match, const Node& node) {
  Cut cut;
  if (node.op->name == "Clip")
    cut = {node.inputs[0], std::min(node.attributes.number("min"), node.attributes.number("max"))};
  if (node.op->name == "Max") {
    const auto is_end = [&](ValueId v) { return match.number(v).has_value(); };
    cut.logarithm = match.other_where(node, is_end);
    if (cut.logarithm)
      cut.end = *match.number(node.inputs[node.inputs[0] == cut.logarithm ? 1 : 0]);
  }
  const bool fits = cut.logarithm && std::isfinite(cut.end) &&
                    match.graph().type(cut.logarithm) == match.graph().type(node.outputs[0]);
  return fits ? cut : Cut{};
}

}  // namespace

Graph stable_cuts(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const Cut found = find_cut(match, node);
    const Node* log = match.is(found.logarithm, "Log");
    const bool is_log1p = log == nullptr;
    if (is_log1p) log = match.is(found.logarithm, "Log1p");
    if (log == nullptr) return false;
    const std::vector<NodeId> others{match.producer(found.logarithm)};
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    GraphBuilder& builder = to.builder();
    const ValueId x = to.mapped(log->inputs[0]);
    const auto number = [&](double value) { return builder.scalar(value, builder.dtype(x)); };
    const ValueId is_end = builder.add_node("Equal", {x, number(is_log1p ? -1 : 0)});
    const ValueId safe = builder.add_node("Where", {is_end, number(is_log1p ? 0 : 1), x});
    std::vector<ValueId> inputs{builder.add_node(log->op->name, {safe})};
    if (node.inputs.size() > 1) inputs.push_back(number(found.end));
    const ValueId cut = builder.add_node(node.op->name, std::move(inputs), node.attributes);
    to.replace(node.outputs[0], builder.add_node("Where", {is_end, number(found.end), cut}));
    context.notes.push_back(node.path + ": a logarithm with the slope 0 where it is cut off");
    return true;
  });
}

}  // namespace tandem
