#include "engine/training/schedule.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

bool in_epochs(const std::optional<Duration>& duration) {
  return duration && duration->unit == Duration::Unit::epochs;
}

/// Where a step is after the warm-up.
struct Place {
  double done;  // 0 to 1, of the rest of the run
  std::int64_t step;
  double base_lr;

  double factor_of(double lr) const { return base_lr == 0 ? 0 : lr / base_lr; }
};

double factor_at(const Place&, const ConstantSchedule&, std::int64_t) { return 1; }
double factor_at(const Place& place, const CosineSchedule& kind, std::int64_t) {
  const double final = place.factor_of(kind.final);
  return final + (1 - final) * (1 + std::cos(M_PI * place.done)) / 2;
}
double factor_at(const Place& place, const LinearSchedule& kind, std::int64_t) {
  return 1 + (place.factor_of(kind.final) - 1) * place.done;
}
double factor_at(const Place& place, const StepSchedule& kind, std::int64_t step_size) {
  return std::pow(kind.gamma, static_cast<double>(place.step / step_size));
}

}  // namespace

Schedule::Schedule(const ScheduleConfig& config, double base_lr, const RunLength& length)
    : config_(config), base_lr_(base_lr), length_(length) {
  if (config_.warmup) warmup_ = config_.warmup->steps(length.steps_per_epoch);
  by_epochs_ = length.ends_by_epochs;
  if (const auto* stairs = std::get_if<StepSchedule>(&config_.kind)) {
    by_epochs_ = in_epochs(stairs->step_size);
    if (stairs->step_size)
      step_size_ = std::max<std::int64_t>(1, stairs->step_size->steps(length.steps_per_epoch));
  }
  const std::int64_t all = length.since_start(length.steps, length.ends_by_epochs);
  rest_ = std::max<std::int64_t>(1, all - warmup_);
}

double Schedule::factor(std::int64_t step) const {
  const std::int64_t warming = length_.since_start(step, in_epochs(config_.warmup));
  if (warming <= warmup_) return static_cast<double>(warming) / static_cast<double>(warmup_);
  const std::int64_t t =
      std::max<std::int64_t>(0, length_.since_start(step, by_epochs_) - warmup_ - 1);
  const double done = std::min(1.0, static_cast<double>(t) / static_cast<double>(rest_));
  return std::visit(
      [&](const auto& kind) {
        return factor_at({done, t, base_lr_}, kind, step_size_);
      },
      config_.kind);
}

}  // namespace tandem
