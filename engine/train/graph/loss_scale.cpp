#include "engine/train/graph/loss_scale.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

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

// A fixed scale, and the steps that its doubling would count.
bool is_left_out(const std::string& name, const PrecisionConfig& precision) {
  return precision.loss_scale && (name == loss_scale_state || name == good_steps_state);
}

/// What is wrong with a state of a checkpoint after `steps` steps; `path` names the state.
std::optional<Diagnostic> problem_of(const NamedTensor& saved, std::uint64_t steps) {
  const bool is_scale = saved.name == loss_scale_state;
  const TensorType type{is_scale ? DType::float32 : DType::int64, {}};
  Diagnostic d{.message = "not a value that a run can have written", .path = saved.name};
  if (saved.tensor.type() != type) {
    d.expected = to_string(type);
    d.got = to_string(saved.tensor.type());
    return d;
  }
  const double value = saved.tensor.number(0);
  if (is_scale ? std::isfinite(value) && value >= least_scale
               : value >= 0 && value <= static_cast<double>(steps)) {
    return std::nullopt;
  }
  d.expected = is_scale ? fmt::format("a finite number of {:g} or more", least_scale)
                        : fmt::format("0 to {}, the steps done", steps);
  d.got = std::isnan(value) ? "nan" : fmt::format("{:g}", value);
  d.fix = "resume from another checkpoint";
  return d;
}

}  // namespace

bool is_loss_scale_state(const std::string& name) {
  return name == loss_scale_state || name == good_steps_state || name == skipped_steps_state;
}

ValueId add_loss_scale(GraphBuilder& g, const PrecisionConfig& precision) {
  const auto start = static_cast<float>(precision.loss_scale.value_or(first_scale));
  return add_scalar_state(g, loss_scale_state, HostTensor::from<float>({}, {start}));
}

UpdateScalars add_scaled_step(GraphBuilder& g, ValueId scale, const std::optional<double>& max_norm,
                              const PrecisionConfig& precision, ValueId step,
                              const std::vector<ValueId>& squares) {
  const HostTensor zero = HostTensor::from<std::int64_t>({}, {0});
  const ValueId good = add_scalar_state(g, good_steps_state, zero);
  const ValueId skipped = add_scalar_state(g, skipped_steps_state, zero);
  std::vector<ValueId> inputs{scale, good, skipped, step};
  inputs.insert(inputs.end(), squares.begin(), squares.end());
  const std::vector<ValueId> made =
      g.node("LossScale", std::move(inputs),
             {{"max_norm", max_norm.value_or(0)},
              {"growth_interval", precision.loss_scale ? 0 : precision.growth_interval}});
  g.write_state(scale, made[0]);
  g.write_state(good, made[1]);
  g.write_state(skipped, made[2]);
  g.output(loss_scale_output, made[0]);
  g.output(skipped_steps_output, made[2]);
  if (max_norm) g.output("gradient_norm", made[6]);
  return {.step = made[5], .scale = made[3], .skip = made[4]};
}

std::int64_t taken_steps(const StateStore& states, std::int64_t steps) {
  if (!states.has(skipped_steps_state)) return steps;
  return steps - states.read(skipped_steps_state).as<std::int64_t>()[0];
}

std::int64_t taken_steps(const CheckpointContent& content) {
  const auto steps = static_cast<std::int64_t>(content.position.step);
  for (const NamedTensor& saved : content.optimizer) {
    if (saved.name == skipped_steps_state && saved.tensor.type() == TensorType{DType::int64, {}})
      return steps - saved.tensor.as<std::int64_t>()[0];
  }
  return steps;
}

std::vector<NamedTensor> restore_loss_scale(StateStore& states, const PrecisionConfig& precision,
                                            const CheckpointContent& content,
                                            const std::string& checkpoint) {
  std::vector<NamedTensor> carried;
  std::vector<Diagnostic> problems;
  for (const NamedTensor& saved : content.optimizer) {
    if (!is_loss_scale_state(saved.name)) continue;
    if (std::optional<Diagnostic> problem = problem_of(saved, content.position.step)) {
      problem->file = checkpoint;
      problems.push_back(std::move(*problem));
    } else if (!states.has(saved.name)) {
      carried.push_back(saved);
    } else if (!is_left_out(saved.name, precision)) {
      states.write(saved.name, saved.tensor);
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
  return carried;
}

void leave_out_fixed_loss_scale(CheckpointSources& sources, const PrecisionConfig& precision) {
  std::erase_if(sources.optimizer,
                [&](const TensorSource& source) { return is_left_out(source.name, precision); });
}

void LossScaleWatch::start(std::int64_t skipped, std::int64_t in_a_row) {
  known_ = skipped;
  in_a_row_ = in_a_row;
}

void LossScaleWatch::note(std::int64_t skipped) {
  in_a_row_ = skipped > known_ ? in_a_row_ + 1 : 0;
  known_ = skipped;
}

void LossScaleWatch::check(const RunConfig& config, std::uint64_t step, double scale,
                           std::int64_t skipped) {
  note(skipped);
  const bool is_fixed = config.precision.loss_scale.has_value();
  if (is_fixed ? in_a_row_ < most_skipped_in_a_row : scale >= least_scale) return;
  Diagnostic d{
      .message =
          is_fixed ? std::to_string(in_a_row_) + " steps in a row had gradients that are not finite"
                   : "the loss scale fell too low: gradients are not finite at any scale",
      .file = config.file,
      .path = "precision.loss_scale"};
  d.message += ", step " + std::to_string(step);
  d.expected = is_fixed ? "finite gradients" : "finite gradients at a scale of 1e-6 or more";
  d.got = fmt::format("a scale of {:g}, {} steps skipped in all", scale, skipped);
  d.fix = is_fixed ? "lower precision.loss_scale, or leave it dynamic"
                   : "look for nan or infinite values in the data, lower optimizer.lr, or name "
                     "operators in precision.keep_float32; earlier checkpoints are kept";
  throw Error(ErrorKind::diverged, std::move(d));
}

}  // namespace tandem
