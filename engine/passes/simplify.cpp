// Removes what computes nothing: Identity, casts to the own type, chains of views, neutral
// constants.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

bool is_identity_permutation(const Ints& perm) {
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

/// Reshape [b.., s, d] -> [n, s, d], Transpose [0, 2, 1], Reshape -> [b.., d, s] is a transposition
/// of the last two axes (what the dynamo exporter writes for attention's keys).
ValueId batched_transpose(GraphRewrite& to, const Match& match, const Node& node) {
  const Node* swap = match.is(node.inputs[0], "Transpose");
  if (swap == nullptr || swap->attributes.integers("perm") != Ints{0, 2, 1}) return {};
  const Node* flat = match.is(swap->inputs[0], "Reshape");
  if (flat == nullptr) return {};
  const Shape& x = match.graph().type(flat->inputs[0]).shape;
  const Shape& middle = match.graph().type(flat->outputs[0]).shape;
  Shape wanted = x;
  if (x.size() < 3) return {};
  std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
  if (middle[1] != x[x.size() - 2] || middle[2] != x[x.size() - 1]) return {};
  if (match.graph().type(node.outputs[0]).shape != wanted) return {};
  return to.builder().transpose_last_two(to.mapped(flat->inputs[0]));
}

/// The value that `node` equals, or -1.
ValueId simpler(GraphRewrite& to, const Match& match, const Node& node) {
  const Graph& graph = match.graph();
  const std::string& op = node.op->name;
  const ValueId x = node.inputs.empty() ? ValueId{} : node.inputs[0];
  if (!x) return {};
  const TensorType& y_type = graph.type(node.outputs[0]);
  const bool same_type = graph.type(x) == y_type;
  if (op == "Identity" || ((op == "Cast" || op == "Reshape" || op == "Expand") && same_type)) {
    return to.mapped(x);
  }
  if (op == "Transpose" && is_identity_permutation(node.attributes.integers("perm"))) {
    return to.mapped(x);
  }
  if (op == "Slice" && same_type) {
    for (std::int64_t step : node.attributes.integers("steps")) {
      if (step != 1) return {};
    }
    return to.mapped(x);
  }
  if (op == "Concat" && node.inputs.size() == 1) return to.mapped(x);
  if (op == "Reshape") {
    if (const ValueId y = batched_transpose(to, match, node)) return y;
    if (const Node* before = match.is(x, "Reshape")) {
      return to.builder().reshape(to.mapped(before->inputs[0]), y_type.shape);
    }
  }
  if (op == "Transpose") {
    if (const Node* before = match.is(x, "Transpose")) {
      const Ints& first = before->attributes.integers("perm");
      Ints both;
      for (std::int64_t axis : node.attributes.integers("perm")) both.push_back(first[axis]);
      const ValueId source = to.mapped(before->inputs[0]);
      return is_identity_permutation(both) ? source : to.builder().transpose(source, both);
    }
  }
  if ((op == "Mul" || op == "Div") && same_type && match.is_number(node.inputs[1], 1.0)) {
    return to.mapped(x);
  }
  if ((op == "Add" || op == "Sub") && same_type && match.is_number(node.inputs[1], 0.0)) {
    return to.mapped(x);
  }
  if ((op == "Mul" && match.is_number(x, 1.0)) || (op == "Add" && match.is_number(x, 0.0))) {
    if (graph.type(node.inputs[1]) == y_type) return to.mapped(node.inputs[1]);
  }
  return {};
}

}  // namespace

Graph simplify(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    to.scope_of(id);
    const ValueId y = simpler(to, match, node);
    if (!y) return false;
    to.replace(node.outputs[0], y);
    return true;
  });
}

}  // namespace tandem
