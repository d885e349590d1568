// x/2 (1 + erf(x/sqrt 2)) and x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) become Gelu.
#include <algorithm>

#include "engine/graph/rewrite.h"
#include "engine/operators/scalar_functions.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

constexpr double sqrt_half = 0.70710678118654752440;
constexpr double sqrt_two_over_pi = 0.79788456080286535588;
constexpr double cubic = 0.044715;

/// One unit in the last place of 1.
double last_place(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 0x1p-52;
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

/// Whether `factor` is `wanted`, a number that no float type holds, rounded to the chain's type: a
/// constant is off by half a last place at most, two of them by one. Where x / sqrt 2 is off by
/// the factor 1 + e, Gelu is off by e x^2 phi(x), at most 0.3 e: less than half a last place of 1,
/// which the chain's own 1 + erf loses as well. A decimal of fewer digits than the type holds
/// (1.4142 in float32) is another number; that chain stays as it is.
bool is_rounded(double factor, double wanted, DType dtype) {
  return std::abs(factor - wanted) <= last_place(dtype) * wanted;
}

/// x where value = Erf(x / sqrt 2).
ValueId erf_argument(const Match& match, ValueId value) {
  const Node* erf = match.is(value, "Erf");
  if (erf == nullptr) return {};
  const Match::Product p = match.product(erf->inputs[0], 1);
  const DType dtype = match.graph().type(value).dtype;
  return p.rest.size() == 1 && is_rounded(p.factor, sqrt_half, dtype) ? p.rest[0] : ValueId{};
}

/// Is value = 0.044715 x^3?
bool is_cubic(const Match& match, ValueId value, ValueId x) {
  const Match::Product p = match.product(value);
  if (!is_rounded(p.factor, cubic, match.graph().type(value).dtype)) return false;
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
  const DType dtype = match.graph().type(value).dtype;
  if (p.rest.size() != 1 || !is_rounded(p.factor, sqrt_two_over_pi, dtype)) return {};
  const Node* sum = match.is(p.rest[0], "Add");
  if (sum == nullptr) return {};
  if (is_cubic(match, sum->inputs[1], sum->inputs[0])) return sum->inputs[0];
  if (is_cubic(match, sum->inputs[0], sum->inputs[1])) return sum->inputs[1];
  return {};
}

struct FoundGelu {
  ValueId x;
  const char* approximate = nullptr;
};

FoundGelu find_gelu(const Match& match, const Node& node) {
  if (node.op->scalar != ScalarFunction::mul) return {};
  const Match::Product p = match.product(node.outputs[0]);
  if (p.rest.size() != 2 || p.factor != 0.5) return {};
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
    const FoundGelu found = find_gelu(match, node);
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
