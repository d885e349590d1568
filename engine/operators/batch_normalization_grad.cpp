// With n = (x - mean) * rstd and M elements a channel: dbias = sum(dy), dscale = sum(dy * n),
// dx = scale * rstd * (dy - dbias / M - n * dscale / M).
#include "engine/operators/batch_normalization.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& view) {
  const Shape channels = require_channels(view, 1);
  const TensorType& x = view.input(1);
  require_type(view, 0, x);
  require_per_channel(view, 2, channels);
  const TensorType saved{statistics_type(x.dtype), channels};
  require_type(view, 3, saved);
  require_type(view, 4, saved);
  return {x, view.input(2), view.input(2)};
}

Cost cost(const NodeView& view) {
  // dy and x are read twice: for the sums and for dx.
  return {10 * element_number(view.input(1)),
          operand_bytes(view) + 2 * static_cast<double>(view.input(1).bytes())};
}

}  // namespace

Operator batch_normalization_grad() {
  return {.name = "BatchNormalizationGrad",
          .inputs = {{"dy"}, {"x"}, {"scale"}, {"saved_mean"}, {"saved_rstd"}},
          .outputs = {{"dx"}, {"dscale"}, {"dbias"}},
          .attributes = {{"epsilon", 1e-5}},
          .infer = infer,
          .not_differentiable = "second derivatives of BatchNormalization are not offered",
          .cost = cost,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
