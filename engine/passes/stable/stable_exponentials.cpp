// exp(x) - 1 becomes Expm1; a sigmoid and a softmax that are written out as quotients of
// exponentials become Sigmoid and Softmax, which have no infinity over infinity.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

/// The single operator that computes what a node does.
struct Whole {
  const char* op = nullptr;
  ValueId x;
  std::int64_t axis = -1;  // for a Softmax
};

ValueId exponent(const Match& match, ValueId value) {
  const Node* exp = match.is(value, "Exp");
  return exp == nullptr ? ValueId{} : exp->inputs[0];
}

/// x where value = 1 + exp(x).
ValueId exponent_beside_one(const Match& match, ValueId value) {
  const Node* add = match.is(value, "Add");
  if (add == nullptr) return {};
  const ValueId other = match.other_where(*add, [&](ValueId v) { return match.is_number(v, 1.0); });
  return other ? exponent(match, other) : ValueId{};
}

/// 1 / (1 + exp(-x)), exp(x) / (1 + exp(x)), exp(x) / sum(exp(x))
Whole quotient(const Match& match, ValueId dividend, bool is_one, ValueId divisor) {
  const Graph& graph = match.graph();
  if (const ValueId below = exponent_beside_one(match, divisor)) {
    const Node* neg = match.is(below, "Neg");
    if (is_one && neg != nullptr) return {"Sigmoid", neg->inputs[0]};
    if (!is_one && exponent(match, dividend) == below) return {"Sigmoid", below};
    return {};
  }
  if (is_one) return {};
  const ValueId x = exponent(match, dividend);
  if (!x) return {};
  while (const Node* moved = match.is(divisor, "Expand")) divisor = moved->inputs[0];
  const Node* sum = match.is(divisor, "ReduceSum");
  if (sum == nullptr || exponent(match, sum->inputs[0]) != x) return {};
  const Ints& axes = sum->attributes.integers("axes");
  if (axes.size() != 1 || !sum->attributes.flag("keepdims")) return {};
  if (graph.type(x).shape[static_cast<std::size_t>(axes[0])] == 0) return {};
  return {"Softmax", x, axes[0]};
}

Whole find_whole(const Match& match, const Node& node) {
  const std::string& op = node.op->name;
  if (op == "Sub" && match.is_number(node.inputs[1], 1.0))
    return {"Expm1", exponent(match, node.inputs[0])};
  if (op == "Add") {
    const ValueId other =
        match.other_where(node, [&](ValueId v) { return match.is_number(v, -1.0); });
    return {"Expm1", other ? exponent(match, other) : ValueId{}};
  }
  if (op == "Reciprocal") return quotient(match, {}, true, node.inputs[0]);
  if (op == "Div") {
    const bool is_one = match.is_number(node.inputs[0], 1.0);
    return quotient(match, node.inputs[0], is_one, node.inputs[1]);
  }
  return {};
}

}  // namespace

Graph stable_exponentials(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const Whole found = find_whole(match, node);
    if (!found.x || graph.type(found.x) != graph.type(node.outputs[0])) return false;
    const std::vector<NodeId> others = match.interior(node.outputs[0], {found.x});
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    Attributes attributes;
    if (found.axis >= 0) attributes.set("axis", found.axis);
    to.replace(node.outputs[0], to.builder().add_node(found.op, {to.mapped(found.x)}, attributes));
    context.notes.push_back(node.path + ": " + found.op);
    return true;
  });
}

}  // namespace tandem
