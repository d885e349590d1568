// y = x, as a view; through StopGradient no gradient flows.
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_identity(const NodeView& node) { return {node.input(0)}; }

Gradients identity_gradient(GradientContext& c) { return {c.dy[0]}; }

Gradients no_gradient(GradientContext&) { return {ValueId{}}; }

std::optional<Layout> identity_view(const NodeView&, const Layout& x) { return x; }

}  // namespace

Operator identity() {
  return {.name = "Identity",
          .role = Role::reshape,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .infer = infer_identity,
          .gradient = identity_gradient,
          .view = identity_view,
          .takes_float8 = true};
}

Operator stop_gradient() {
  return {.name = "StopGradient",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .infer = infer_identity,
          .gradient = no_gradient,
          .view = identity_view,
          .engine_only = true,
          .takes_float8 = true};
}

}  // namespace tandem::operators
