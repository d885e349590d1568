// How many steps a training has, and what is due after which of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "engine/training/config/run_config.h"

namespace tandem {

struct RunLength {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  std::int64_t steps_per_epoch = 1;
  std::int64_t steps = 1;  // unlimited: max_time alone ends the run

  bool is_limited() const { return steps != unlimited; }
};

/// The first of `steps` and `epochs` ends the run; one epoch where neither they nor max_time are
/// set. Throws Error{usage} where the samples make no batch, or the run would never end.
RunLength run_length(const RunConfig& config, std::int64_t samples);

/// Says whether something that happens every `duration` is due after a step; times count from the
/// making of this. Nothing is ever due without a duration.
class Every {
 public:
  Every(const std::optional<Duration>& duration, std::int64_t steps_per_epoch);
  bool due(std::uint64_t step);

 private:
  std::optional<Duration> duration_;
  std::int64_t steps_ = 0;
  std::chrono::steady_clock::time_point last_;
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tandem
