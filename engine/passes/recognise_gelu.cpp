// x/2 (1 + erf(x/sqrt 2)) and x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) become Gelu.
#include <algorithm>

#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

constexpr double tolerance = 1e-3;
bool near(double a, double b) { return std::abs(a - b) <= tolerance * std::abs(b); }

/// x where value = Erf(x / sqrt 2).
ValueId erf_argument(const Match& match, ValueId value) {
  const Node* erf = match.is(value, "Erf");
  if (erf == nullptr) return {};
  const Match::Product p = match.product(erf->inputs[0], 1);
  return p.rest.size() == 1 && near(p.factor, 0.70710678) ? p.rest[0] : ValueId{};
}

/// Is value = 0.044715 x^3?
bool is_cubic(const Match& match, ValueId value, ValueId x) {
  const Match::Product p = match.product(value);
  if (!near(p.factor, 0.044715)) return false;
  if (p.rest.size() == 3)
    return std::all_of(p.rest.begin(), p.rest.end(), [&](ValueId v) { return v == x; });
  if (p.rest.size() != 1) return false;
  const Node* pow = match.is(p.rest[0], "Pow");
  return pow != nullptr && pow->inputs[0] == x && match.is_number(pow->inputs[1], 3.0);
}

/// x where value = Tanh(sqrt(2/pi) (x + 0.044715 x^3)).
ValueId tanh_argument(const Match& match, ValueId value) {
  const Node* tanh = match.is(value, "Tanh");
  if (tanh == nullptr) return {};
  const Match::Product p = match.product(tanh->inputs[0], 1);
  if (p.rest.size() != 1 || !near(p.factor, 0.7978845608)) return {};
  const Node* sum = match.is(p.rest[0], "Add");
  if (sum == nullptr) return {};
  if (is_cubic(match, sum->inputs[1], sum->inputs[0])) return sum->inputs[0];
  if (is_cubic(match, sum->inputs[0], sum->inputs[1])) return sum->inputs[1];
  return {};
}

struct Found {
  ValueId x;
  const char* approximate = nullptr;
};

Found find(const Match& match, const Node& node) {
  if (node.op->name != "Mul") return {};
  const Match::Product p = match.product(node.outputs[0]);
  if (p.rest.size() != 2 || !near(p.factor, 0.5)) return {};
  for (int i = 0; i < 2; ++i) {
    const ValueId x = p.rest[i];
    const Node* plus_one = match.is(p.rest[1 - i], "Add");
    if (plus_one == nullptr) continue;
    const ValueId inner =
        match.other_where(*plus_one, [&](ValueId v) { return match.is_number(v, 1.0); });
    if (!inner) continue;
    if (erf_argument(match, inner) == x) return {x, "none"};
    if (tanh_argument(match, inner) == x) return {x, "tanh"};
  }
  return {};
}

}  // namespace

Graph recognise_gelu(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const Found found = find(match, node);
    if (found.approximate == nullptr || graph.type(found.x) != graph.type(node.outputs[0])) {
      return false;
    }
    const std::vector<NodeId> others = match.interior(node.outputs[0], {found.x});
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    to.replace(node.outputs[0],
               to.builder().add_node("Gelu", {to.mapped(found.x)},
                                     {{"approximate", std::string(found.approximate)}}));
    context.notes.push_back(node.path + ": Gelu");
    return true;
  });
}

}  // namespace tandem
