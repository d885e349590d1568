// norm = sqrt(sum of the inputs); scale = min(1, max_norm / (norm + 1e-6)), as PyTorch's
// clip_grad_norm_.
#include "engine/operators/operator.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_clip_scale(const NodeView& view) {
  if (view.input_count() == 0) view.fail("there is nothing to clip", "an input at least", "none");
  const TensorType scalar = view.input(0);
  if (scalar.dtype != DType::float64) require_dtype(view, 0, DType::float32);
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    require_type(view, i, {scalar.dtype, {}});
  }
  require_not_negative(view, "max_norm");
  return {scalar, scalar};
}

}  // namespace

Operator clip_scale() {
  return {.name = "ClipScale",
          .inputs = {{.name = "sums_of_squares", .variadic = true}},
          .outputs = {{"scale"}, {"norm"}},
          .attributes = {{"max_norm", 0.0, true}},
          .infer = infer_clip_scale,
          .not_differentiable = not_differentiable_update,
          .engine_only = true};
}

}  // namespace tandem::operators
