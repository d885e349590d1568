// The dynamic loss scale of PyTorch's GradScaler, over gradients of scale * loss whose sums of
// squares come in: norm = sqrt(their sum) / scale, factor = 1 / scale (times ClipScale's factor
// where max_norm is not 0), skip = that sum is not finite. Skipped: scale * backoff_factor,
// good_steps = 0, skipped_steps + 1. Else good_steps + 1; growth_interval of them: scale *
// growth_factor where that is finite, and good_steps = 0. With growth_interval 0 the scale stays.
// taken_step = step - skipped_steps before this step. Where skip holds, factor is 0.
#include "engine/operators/operator.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

constexpr std::size_t first_sum = 4;

void require_loss_scale_settings(const NodeView& view) {
  require_not_negative(view, "max_norm");
  const double growth = view.attributes().number("growth_factor"),
               backoff = view.attributes().number("backoff_factor");
  if (!(growth > 1)) view.fail("growth_factor is out of range", "above 1", std::to_string(growth));
  if (!(backoff > 0 && backoff < 1)) {
    view.fail("backoff_factor is out of range", "between 0 and 1", std::to_string(backoff));
  }
  const std::int64_t interval = view.attributes().integer("growth_interval");
  if (interval < 0) {
    view.fail("growth_interval is out of range", "at least 0", std::to_string(interval));
  }
}

std::vector<TensorType> infer_loss_scale(const NodeView& view) {
  require_loss_scale_settings(view);
  const TensorType scale = view.input(0), count{DType::int64, {}};
  if (scale.dtype != DType::float64) require_dtype(view, 0, DType::float32);
  require_shape(view, 0, {});
  for (std::size_t i = 1; i < first_sum; ++i) require_type(view, i, count);
  if (view.input_count() == first_sum) {
    view.fail("there is no gradient", "a sum of squares at least", "none");
  }
  for (std::size_t i = first_sum; i < view.input_count(); ++i) require_type(view, i, scale);
  return {scale, count, count, scale, {DType::boolean, {}}, count, scale};
}

}  // namespace

Operator loss_scale() {
  return {
      .name = "LossScale",
      .inputs = {{"scale"},
                 {"good_steps"},
                 {"skipped_steps"},
                 {"step"},
                 {.name = "sums_of_squares", .variadic = true}},
      .outputs = {{"new_scale"},
                  {"new_good_steps"},
                  {"new_skipped_steps"},
                  {"factor"},
                  {"skip"},
                  {"taken_step"},
                  {"norm"}},
      .attributes = {{"max_norm", 0.0},
                     {"growth_factor", 2.0},
                     {"backoff_factor", 0.5},
                     {"growth_interval", std::int64_t{2000}}},
      .infer = infer_loss_scale,
      .not_differentiable = not_differentiable_update,
      .aliases = {{.output = 0, .input = 0}, {.output = 1, .input = 1}, {.output = 2, .input = 2}},
      .engine_only = true};
}

}  // namespace tandem::operators
