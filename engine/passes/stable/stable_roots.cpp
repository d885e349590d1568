// Roots of sums of powers, as in norms, distances and deviations, and of numbers cut off at 0 get
// the slope 0 where the root is 0: PyTorch's norm, std and cdist have it, a plain root has an
// infinite one.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

/// x x, |x|^p or x^p with an even p, above 1: not negative, and flat where it is 0.
bool is_power(const Match& match, ValueId value) {
  if (const Node* square = match.is(value, "Mul")) return square->inputs[0] == square->inputs[1];
  const Node* pow = match.is(value, "Pow");
  if (pow == nullptr) return false;
  const std::optional<double> p = match.number(pow->inputs[1]);
  if (!p || !(*p > 1) || !std::isfinite(*p)) return false;
  return std::fmod(*p, 2.0) == 0 || match.is(pow->inputs[0], "Abs") != nullptr;
}

/// Not negative, with the slope 0 where it is 0: a power, an absolute value, a number cut off at 0;
/// sums and means of those, also times positive constants and each other.
bool is_flat_at_zero(const Match& match, ValueId value, int depth = 6) {
  if (depth == 0) return false;
  const auto is_positive = [&](ValueId v) {
    const std::optional<double> number = match.number(v);
    return number && *number > 0 && std::isfinite(*number);
  };
  const auto is_flat = [&](ValueId v) { return is_flat_at_zero(match, v, depth - 1); };
  if (is_power(match, value) || match.is(value, "Abs") || match.is(value, "Relu")) return true;
  if (const Node* clip = match.is(value, "Clip")) return clip->attributes.number("min") == 0;
  if (const Node* max = match.is(value, "Max"))
    return match.is_number(max->inputs[0], 0) || match.is_number(max->inputs[1], 0);
  if (const Node* mul = match.is(value, "Mul")) {
    const ValueId a = mul->inputs[0], b = mul->inputs[1];
    return (is_flat(a) && (is_positive(b) || is_flat(b))) || (is_positive(a) && is_flat(b));
  }
  if (const Node* div = match.is(value, "Div"))
    return is_positive(div->inputs[1]) && is_flat(div->inputs[0]);
  if (const Node* add = match.is(value, "Add"))
    return is_flat(add->inputs[0]) && is_flat(add->inputs[1]);
  for (const char* passing : {"ReduceSum", "ReduceMean", "Reshape"}) {
    if (const Node* node = match.is(value, passing)) return is_flat(node->inputs[0]);
  }
  return false;
}

/// What the node is a root of.
ValueId radicand(const Match& match, const Node& node) {
  if (node.op->name == "Sqrt") return node.inputs[0];
  if (node.op->name != "Pow") return {};
  const std::optional<double> p = match.number(node.inputs[1]);
  return p && *p > 0 && *p < 1 ? node.inputs[0] : ValueId{};
}

}  // namespace

Graph stable_roots(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const ValueId under = radicand(match, node);
    if (!under || graph.type(under) != graph.type(node.outputs[0])) return false;
    if (!is_flat_at_zero(match, under)) return false;
    to.scope_of(id);
    GraphBuilder& builder = to.builder();
    const ValueId x = to.mapped(under);
    const DType dtype = builder.dtype(x);
    const ValueId zero = builder.scalar(0, dtype);
    const ValueId is_zero = builder.add_node("Equal", {x, zero});
    const ValueId safe = builder.add_node("Where", {is_zero, builder.scalar(1, dtype), x});
    std::vector<ValueId> inputs{safe};
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      inputs.push_back(to.mapped(node.inputs[i]));
    const ValueId root = builder.add_node(node.op->name, std::move(inputs), node.attributes);
    to.replace(node.outputs[0], builder.add_node("Where", {is_zero, zero, root}));
    context.notes.push_back(node.path + ": a root with the slope 0 at 0");
    return true;
  });
}

}  // namespace tandem
