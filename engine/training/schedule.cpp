#include "engine/training/schedule.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

bool in_epochs(const std::optional<Duration>& duration) {
  return duration && duration->unit == Duration::Unit::epochs;
}

}  // namespace

Schedule::Schedule(const ScheduleConfig& config, double base_lr, const RunLength& length)
    : config_(config), base_lr_(base_lr), length_(length) {
  if (config_.warmup) warmup_ = config_.warmup->steps(length.steps_per_epoch);
  if (config_.step_size)
    step_size_ = std::max<std::int64_t>(1, config_.step_size->steps(length.steps_per_epoch));
  const std::int64_t all = length.since_start(length.steps, length.ends_by_epochs);
  rest_ = std::max<std::int64_t>(1, all - warmup_);
}

double Schedule::factor(std::int64_t step) const {
  const std::int64_t warming = length_.since_start(step, in_epochs(config_.warmup));
  if (warming <= warmup_) return static_cast<double>(warming) / static_cast<double>(warmup_);
  const bool by_epochs =
      config_.kind == ScheduleKind::step ? in_epochs(config_.step_size) : length_.ends_by_epochs;
  const std::int64_t t =
      std::max<std::int64_t>(0, length_.since_start(step, by_epochs) - warmup_ - 1);
  const double done = std::min(1.0, static_cast<double>(t) / static_cast<double>(rest_));
  const double final = base_lr_ == 0 ? 0 : config_.final / base_lr_;
  switch (config_.kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::cosine:
      return final + (1 - final) * (1 + std::cos(M_PI * done)) / 2;
    case ScheduleKind::linear:
      return 1 + (final - 1) * done;
    case ScheduleKind::step:
      return std::pow(config_.gamma, static_cast<double>(t / step_size_));
  }
  return 1;
}

}  // namespace tandem
