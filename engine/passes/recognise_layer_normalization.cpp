// (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias becomes LayerNormalization.
#include "engine/graph/rewrite.h"
#include "engine/operators/scalar_functions.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

struct Normalised {
  ValueId x;
  double epsilon = 0;
  std::int64_t axis = -1;
};

/// The first axis where `node` reduces exactly the trailing axes and keeps them, or -1.
std::int64_t trailing_axis(const Match& match, const Node& node) {
  const auto rank = static_cast<std::int64_t>(match.graph().type(node.inputs[0]).rank());
  const Ints& axes = node.attributes.integers("axes");
  if (axes.empty() || !node.attributes.flag("keepdims")) return -1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != rank - static_cast<std::int64_t>(axes.size() - i)) return -1;
  }
  return axes[0];
}

/// x and axis where value = x - ReduceMean(x).
Normalised centred(const Match& match, ValueId value) {
  const Node* sub = match.is(value, "Sub");
  if (sub == nullptr) return {};
  const Node* mean = match.is(sub->inputs[1], "ReduceMean");
  if (mean == nullptr || mean->inputs[0] != sub->inputs[0]) return {};
  return {sub->inputs[0], 0, trailing_axis(match, *mean)};
}

Normalised find_normalised(const Match& match, ValueId value) {
  const Node* div = match.is(value, "Div");
  if (div == nullptr) return {};
  Normalised result = centred(match, div->inputs[0]);
  const Node* root = match.is(div->inputs[1], "Sqrt");
  if (result.axis < 0 || root == nullptr) return {};
  const Node* sum = match.is(root->inputs[0], "Add");
  if (sum == nullptr) return {};
  const ValueId variance =
      match.other_where(*sum, [&](ValueId v) { return match.number(v).has_value(); });
  if (!variance) return {};
  result.epsilon = *match.number(variance == sum->inputs[0] ? sum->inputs[1] : sum->inputs[0]);
  if (!(result.epsilon >= 0 && std::isfinite(result.epsilon))) return {};
  const Node* mean = match.is(variance, "ReduceMean");
  if (mean == nullptr || trailing_axis(match, *mean) != result.axis) return {};
  ValueId difference;
  if (const Node* pow = match.is(mean->inputs[0], "Pow")) {
    if (match.is_number(pow->inputs[1], 2.0)) difference = pow->inputs[0];
  } else if (const Node* square = match.is(mean->inputs[0], "Mul")) {
    if (square->inputs[0] == square->inputs[1]) difference = square->inputs[0];
  }
  if (!difference) return {};
  const Normalised again = centred(match, difference);
  if (again.x != result.x || again.axis != result.axis) return {};
  // Neither epsilon nor the exponent may widen what it is combined with.
  const Graph& graph = match.graph();
  if (graph.type(root->inputs[0]) != graph.type(variance)) return {};
  if (graph.type(mean->inputs[0]) != graph.type(difference)) return {};
  return result;
}

bool has_normalised_shape(const Graph& graph, ValueId value, const Normalised& found) {
  const Shape& x = graph.type(found.x).shape;
  return graph.type(value).shape == Shape(x.begin() + found.axis, x.end());
}

/// scale where node = normalised * scale.
ValueId find_scale(const Match& match, const Node& mul, Normalised& found) {
  for (int i = 0; i < 2; ++i) {
    found = find_normalised(match, mul.inputs[i]);
    if (found.axis >= 0 && has_normalised_shape(match.graph(), mul.inputs[1 - i], found)) {
      return mul.inputs[1 - i];
    }
  }
  return {};
}

}  // namespace

Graph recognise_layer_normalization(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    Normalised found;
    ValueId scale, bias;
    if (node.op->scalar == ScalarFunction::mul) {
      scale = find_scale(match, node, found);
    } else if (node.op->scalar == ScalarFunction::add) {
      for (int i = 0; i < 2 && !scale; ++i) {
        const Node* mul = match.is(node.inputs[i], "Mul");
        if (mul == nullptr) continue;
        scale = find_scale(match, *mul, found);
        bias = node.inputs[1 - i];
        if (scale && !has_normalised_shape(graph, bias, found)) scale = {};
      }
    }
    if (!scale || graph.type(found.x).elements() == 0) return false;
    const std::vector<NodeId> others = match.interior(node.outputs[0], {found.x, scale, bias});
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    to.replace(node.outputs[0],
               to.builder().add_node("LayerNormalization",
                                     {to.mapped(found.x), to.mapped(scale), to.mapped(bias)},
                                     {{"axis", found.axis}, {"epsilon", found.epsilon}}));
    if (bias) {  // the product before it was recognised on its own
      std::erase_if(context.notes, [&](const std::string& note) {
        return std::any_of(others.begin(), others.end(), [&](NodeId other) {
          return note == graph.node(other).path + ": LayerNormalization";
        });
      });
    }
    context.notes.push_back(node.path + ": LayerNormalization");
    return true;
  });
}

}  // namespace tandem
