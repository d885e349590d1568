// atan2(y, x), which exporters write with Atan(y / x), divides by the larger of the two, so that it
// has a value at (0, 0) and gradients where x is 0.
#include <numbers>

#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

struct Angle {
  ValueId y, x;
};

bool is_pi(const Match& match, ValueId value) {
  const std::optional<double> number = match.number(value);
  return number && std::abs(*number - std::numbers::pi) < 1e-2;  // in bfloat16, too
}

/// Where(x < 0, Where(y > 0, a + pi, a - pi), a) of a = atan(y / x).
Angle find_angle(const Match& match, const Node& node) {
  if (node.op->name != "Where") return {};
  const ValueId angle = node.inputs[2];
  const Node* atan = match.is(angle, "Atan");
  const Node* div = atan != nullptr ? match.is(atan->inputs[0], "Div") : nullptr;
  const Node* is_left = match.is(node.inputs[0], "Less");
  const Node* turned = match.is(node.inputs[1], "Where");
  if (div == nullptr || is_left == nullptr || turned == nullptr) return {};
  const Node* is_above = match.is(turned->inputs[0], "Greater");
  const Node* more = match.is(turned->inputs[1], "Add");
  const Node* less = match.is(turned->inputs[2], "Sub");
  if (is_above == nullptr || more == nullptr || less == nullptr) return {};
  const Angle found{div->inputs[0], div->inputs[1]};
  const auto is_half_turn = [&](ValueId v) { return is_pi(match, v); };
  const bool fits = is_left->inputs[0] == found.x && match.is_number(is_left->inputs[1], 0) &&
                    is_above->inputs[0] == found.y && match.is_number(is_above->inputs[1], 0) &&
                    match.other_where(*more, is_half_turn) == angle && less->inputs[0] == angle &&
                    is_half_turn(less->inputs[1]) &&
                    match.graph().type(angle) == match.graph().type(node.outputs[0]);
  return fits ? found : Angle{};
}

}  // namespace

Graph stable_angles(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const Angle found = find_angle(match, node);
    if (!found.x) return false;
    const std::vector<NodeId> others = match.interior(node.outputs[0], {found.x, found.y});
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    GraphBuilder& builder = to.builder();
    const ValueId y = to.mapped(found.y), x = to.mapped(found.x);
    const auto number = [&](double value) { return builder.scalar(value, builder.dtype(x)); };
    const auto choice = [&](ValueId condition, ValueId yes, ValueId no) {
      return builder.add_node("Where", {condition, yes, no});
    };
    const ValueId is_steep =
        builder.add_node("Greater", {builder.add_node("Abs", {y}), builder.add_node("Abs", {x})});
    const ValueId larger = choice(is_steep, y, x), smaller = choice(is_steep, x, y);
    const ValueId is_origin = builder.add_node("Equal", {larger, number(0)});
    const ValueId angle = builder.add_node(
        "Atan",
        {builder.div(choice(is_origin, number(0), smaller), choice(is_origin, number(1), larger))});
    const double pi = std::numbers::pi;
    const ValueId is_above = builder.add_node("Greater", {y, number(0)});
    const ValueId is_left = builder.add_node("Less", {x, number(0)});
    const ValueId steep = builder.sub(choice(is_above, number(pi / 2), number(-pi / 2)), angle);
    const ValueId turn = choice(is_above, number(pi), number(-pi));
    const ValueId flat = builder.add(angle, choice(is_left, turn, number(0)));
    to.replace(node.outputs[0], choice(is_steep, steep, flat));
    context.notes.push_back(node.path + ": atan2(y, x)");
    return true;
  });
}

}  // namespace tandem
