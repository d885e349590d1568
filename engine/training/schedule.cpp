#include "engine/training/schedule.h"

#include <algorithm>
#include <cmath>

namespace tandem {

Schedule::Schedule(const ScheduleConfig& config, double base_lr, std::int64_t total_steps,
                   std::int64_t steps_per_epoch)
    : config_(config), base_lr_(base_lr) {
  if (config_.warmup) warmup_ = config_.warmup->steps(steps_per_epoch);
  if (config_.step_size)
    step_size_ = std::max<std::int64_t>(1, config_.step_size->steps(steps_per_epoch));
  rest_ = std::max<std::int64_t>(1, total_steps - warmup_);
}

double Schedule::factor(std::int64_t step) const {
  if (step <= warmup_) return static_cast<double>(step) / static_cast<double>(warmup_);
  const std::int64_t t = step - warmup_ - 1;
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
