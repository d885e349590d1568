// How far averages of weights move towards the trained weights in a step: the numbers depend only
// on the step, so that a resumed run continues as before.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/train/loop/run_length.h"

namespace tandem {

enum class Average : std::uint8_t { ema, swa, lookahead };
inline constexpr const char* average_names[] = {"ema", "swa", "lookahead"};

class AverageRates {
 public:
  AverageRates(const OptimizerConfig& config, const RunLength& length)
      : config_(config), length_(length) {}

  /// After this step, counted from 1, an average a becomes a (1 - rate) + w rate.
  ///   ema: 1 until the first one that counts, then 1 - decay, as AveragedModel with
  ///        get_ema_multi_avg_fn of torch.optim.swa_utils
  ///   swa: 1 until the first one that counts, then 1 / (n + 1) where n count already, 0 between
  ///   lookahead: alpha in each k-th step, else 0 (Zhang et al. 2019); 0 changes nothing
  double of(Average average, std::int64_t step) const;
  void set_length(const RunLength& length) { length_ = length; }

 private:
  double of_ema(const EmaConfig& config, std::int64_t step) const;
  double of_swa(const SwaConfig& config, std::int64_t step) const;
  /// Steps that are done once `duration` is over, counted as it is.
  std::int64_t since(const std::optional<Duration>& duration, std::int64_t step) const;

  const OptimizerConfig& config_;
  RunLength length_;
};

}  // namespace tandem
