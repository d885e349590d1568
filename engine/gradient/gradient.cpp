#include "engine/gradient/gradient.h"

#include <cassert>

namespace tandem {
namespace {

/// needs[v]: v is a wanted value or computed from one, in floating point.
std::vector<bool> depends_on(const Graph& graph, std::span<const ValueId> wanted) {
  std::vector<bool> depends(graph.values.size(), false);
  for (ValueId id : wanted) depends[id.index] = true;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for (ValueId input : node.inputs) any = any || (input && depends[input.index]);
    if (!any) continue;
    for (ValueId output : node.outputs) {
      if (output && is_float(graph.type(output).dtype)) depends[output.index] = true;
    }
  }
  return depends;
}

Diagnostic missing(const Node& node) {
  return {.message =
              "operator " + node.op->name + " has no gradient, but a trainable parameter needs it",
          .path = node.path,
          .expected = "a differentiable operator",
          .got = node.op->not_differentiable,
          .fix = "freeze the parameters before it, or rewrite this part of the model"};
}

}  // namespace

std::vector<ValueId> add_gradients(GraphBuilder& builder, std::span<const GradientSeed> seeds,
                                   std::span<const ValueId> wanted) {
  const std::size_t forward_nodes = builder.graph().nodes.size();
  const std::vector<bool> needs = depends_on(builder.graph(), wanted);
  const GraphBuilder::Scope old_scope = builder.scope();

  // Partial gradients per forward value; summed when the walk reaches the value's producer.
  std::vector<std::vector<ValueId>> partial(builder.graph().values.size());
  for (const GradientSeed& seed : seeds) {
    if (needs[seed.value.index]) partial[seed.value.index].push_back(seed.dy);
  }
  auto total = [&](ValueId id) -> ValueId {
    std::vector<ValueId>& parts = partial[id.index];
    if (parts.empty()) return {};
    ValueId sum = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) sum = builder.add(sum, parts[i]);
    parts.assign(1, sum);
    return sum;
  };

  for (std::size_t i = forward_nodes; i-- > 0;) {
    const Node node = builder.graph().nodes[i];
    std::vector<bool> wants(node.inputs.size(), false);
    bool any_wanted = false, any_gradient = false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      wants[k] = node.inputs[k] && needs[node.inputs[k].index];
      any_wanted = any_wanted || wants[k];
    }
    for (ValueId output : node.outputs) {
      any_gradient = any_gradient || (output && !partial[output.index].empty());
    }
    if (!any_wanted || !any_gradient) continue;
    if (node.op->gradient == nullptr) {
      std::vector<ValueId> values;
      for (const GradientSeed& seed : seeds) values.push_back(seed.value);
      builder.set_scope(old_scope);
      throw Error(ErrorKind::usage, missing_gradients(builder.graph(), values, wanted));
    }
    builder.set_scope({node.path, Phase::backward, node.origins});
    std::vector<ValueId> dy;
    for (ValueId output : node.outputs) dy.push_back(output ? total(output) : ValueId{});
    GradientContext context{builder, node, dy, wants};
    const Gradients dx = node.op->gradient(context);
    assert(dx.size() == node.inputs.size());
    for (std::size_t k = 0; k < dx.size(); ++k) {
      if (!wants[k] || !dx[k]) continue;
      assert(builder.type(dx[k]) == builder.type(node.inputs[k]) && "gradient has another type");
      partial[node.inputs[k].index].push_back(dx[k]);
    }
  }

  std::vector<ValueId> result;
  for (ValueId id : wanted) {
    builder.set_scope({old_scope.path, Phase::backward, old_scope.origins});
    result.push_back(total(id));
  }
  builder.set_scope(old_scope);
  return result;
}

std::vector<Diagnostic> missing_gradients(const Graph& graph, std::span<const ValueId> values,
                                          std::span<const ValueId> wanted) {
  const std::vector<bool> needs = depends_on(graph, wanted);
  std::vector<bool> reached(graph.values.size(), false);
  for (ValueId id : values) reached[id.index] = true;
  std::vector<Diagnostic> problems;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    bool any = false, any_needed = false;
    for (ValueId output : node.outputs) any = any || (output && reached[output.index]);
    for (ValueId input : node.inputs) any_needed = any_needed || (input && needs[input.index]);
    if (!any || !any_needed) continue;
    if (node.op->gradient == nullptr) problems.push_back(missing(node));
    for (ValueId input : node.inputs) {
      if (input && needs[input.index]) reached[input.index] = true;
    }
  }
  return problems;
}

}  // namespace tandem
