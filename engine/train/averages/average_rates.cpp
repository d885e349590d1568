#include "engine/train/averages/average_rates.h"

#include <algorithm>

namespace tandem {

std::int64_t AverageRates::since(const std::optional<Duration>& duration, std::int64_t step) const {
  if (!duration) return step;
  return length_.since_start(step, duration->unit == Duration::Unit::epochs) -
         duration->steps(length_.steps_per_epoch);
}

double AverageRates::of_ema(const EmaConfig& config, std::int64_t step) const {
  // Without a start the first step is the first one that counts.
  const std::int64_t n = since(config.start, step) - (config.start ? 0 : 1);
  if (n <= 0) return 1;
  const auto t = static_cast<double>(n);
  const double decay = config.warmup ? std::min(config.decay, (1 + t) / (10 + t)) : config.decay;
  return 1 - decay;
}

double AverageRates::of_swa(const SwaConfig& config, std::int64_t step) const {
  const std::int64_t done = since(config.start, step);
  if (done <= 0) return 1;
  const std::int64_t every = config.every.steps(length_.steps_per_epoch);
  return done % every == 0 ? 1 / static_cast<double>(done / every + 1) : 0;
}

double AverageRates::of(Average average, std::int64_t step) const {
  switch (average) {
    case Average::ema:
      return config_.ema ? of_ema(*config_.ema, step) : 0;
    case Average::swa:
      return config_.swa ? of_swa(*config_.swa, step) : 0;
    case Average::lookahead:
      return config_.lookahead && step % config_.lookahead->k == 0 ? config_.lookahead->alpha : 0;
  }
  return 0;
}

}  // namespace tandem
