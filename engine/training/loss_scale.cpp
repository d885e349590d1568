#include "engine/training/loss_scale.h"

#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr double first_scale = 65536;  // PyTorch's, as the factors that the operator has
constexpr double least_scale = 1e-6;
constexpr int most_skipped_in_a_row = 40;

ValueId add_scalar_state(GraphBuilder& g, const char* name, HostTensor start) {
  State state;
  state.name = name;
  state.kind = StateKind::optimizer;
  state.start = std::move(start);
  return g.state(std::move(state));
}

}  // namespace

bool is_loss_scale_state(const std::string& name) {
  return name == loss_scale_state || name == good_steps_state || name == skipped_steps_state;
}

ValueId add_loss_scale(GraphBuilder& g, const PrecisionConfig& precision) {
  const auto start = static_cast<float>(precision.loss_scale.value_or(first_scale));
  return add_scalar_state(g, loss_scale_state, HostTensor::from<float>({}, {start}));
}

UpdateScalars add_scaled_step(GraphBuilder& g, ValueId scale, const RunConfig& config, ValueId step,
                              const std::vector<ValueId>& squares) {
  const HostTensor zero = HostTensor::from<std::int64_t>({}, {0});
  const ValueId good = add_scalar_state(g, good_steps_state, zero);
  const ValueId skipped = add_scalar_state(g, skipped_steps_state, zero);
  std::vector<ValueId> inputs{scale, good, skipped, step};
  inputs.insert(inputs.end(), squares.begin(), squares.end());
  const PrecisionConfig& precision = config.precision;
  const std::vector<ValueId> made =
      g.node("LossScale", std::move(inputs),
             {{"max_norm", config.optimizer.clip_norm.value_or(0)},
              {"growth_interval", precision.loss_scale ? 0 : precision.growth_interval}});
  g.write_state(scale, made[0]);
  g.write_state(good, made[1]);
  g.write_state(skipped, made[2]);
  g.output(loss_scale_output, made[0]);
  g.output(skipped_steps_output, made[2]);
  if (config.optimizer.clip_norm) g.output("gradient_norm", made[6]);
  return {.step = made[5], .scale = made[3], .skip = made[4]};
}

void keep_fixed_loss_scale(StateStore& states, const PrecisionConfig& precision) {
  if (!precision.loss_scale || !states.has(loss_scale_state)) return;
  const auto scale = static_cast<float>(*precision.loss_scale);
  states.write(loss_scale_state, HostTensor::from<float>({}, {scale}));
}

void LossScaleWatch::check(const RunConfig& config, std::uint64_t step, double scale,
                           std::int64_t skipped) {
  const bool was_skipped = known_ >= 0 ? skipped > known_ : false;
  known_ = skipped;
  in_a_row_ = was_skipped ? in_a_row_ + 1 : 0;
  const bool is_fixed = config.precision.loss_scale.has_value();
  if (in_a_row_ < most_skipped_in_a_row && (is_fixed || scale >= least_scale)) return;
  Diagnostic d;
  d.file = config.file;
  d.path = "precision.loss_scale";
  d.message = in_a_row_ >= most_skipped_in_a_row
                  ? std::to_string(in_a_row_) + " steps in a row had gradients that are not finite"
                  : "the loss scale fell too low: gradients are not finite at any scale";
  d.message += ", step " + std::to_string(step);
  d.expected = is_fixed ? "gradients within float16" : "a scale of 1e-6 or more";
  d.got = "a scale of " + std::to_string(scale) + ", " + std::to_string(skipped) +
          " steps skipped in all";
  d.fix = is_fixed ? "lower precision.loss_scale, or leave it dynamic"
                   : "look for nan or infinite values in the data, lower optimizer.lr, or name "
                     "operators in precision.keep_float32; earlier checkpoints are kept";
  throw Error(ErrorKind::diverged, std::move(d));
}

}  // namespace tandem
