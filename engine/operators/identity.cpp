// y = x, as a view; through StopGradient no gradient flows.
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) { return {node.input(0)}; }

Gradients gradient(GradientContext& c) { return {c.dy[0]}; }

Gradients no_gradient(GradientContext&) { return {ValueId{}}; }

std::optional<Layout> view(const NodeView&, const Layout& x) { return x; }

}  // namespace

Operator identity() {
  Operator op;
  op.name = "Identity";
  op.role = Role::reshape;
  op.inputs = {{"x"}};
  op.outputs = {{"y"}};
  op.infer = infer;
  op.gradient = gradient;
  op.view = view;
  return op;
}

Operator stop_gradient() {
  Operator op;
  op.name = "StopGradient";
  op.inputs = {{"x"}};
  op.outputs = {{"y"}};
  op.infer = infer;
  op.gradient = no_gradient;
  op.view = view;
  op.engine_only = true;
  return op;
}

}  // namespace tandem::operators
