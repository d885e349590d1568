// How many steps a training has, and what is due after which of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "engine/config/run_config.h"
#include "engine/data/loader.h"

namespace tandem {

/// What is counted in epochs depends on the place in the data, what is counted in steps on the
/// number of steps. The two differ once a run was resumed with another batch size.
struct RunLength {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  std::int64_t steps_per_epoch = 1;
  std::int64_t steps = 1;  // unlimited: only max_time ends the run
  /// Steps done where the data would have begun, had all steps had this batch size; may be
  /// negative.
  std::int64_t origin = 0;
  bool ends_by_epochs = false;

  bool is_limited() const { return steps != unlimited; }
  /// Steps since the start, or steps of this batch size since the start of the data.
  std::int64_t since_start(std::int64_t step, bool in_epochs) const {
    return in_epochs ? step - origin : step;
  }
  double epoch(std::int64_t step) const {
    return static_cast<double>(step - origin) / static_cast<double>(steps_per_epoch);
  }
  /// Whether this much of the run is over after a step; never true for a time.
  bool has_passed(const Duration& duration, std::int64_t step) const;
};

/// Where a run is between two steps.
struct RunPlace {
  std::int64_t step = 0;
  DataPosition data;
};

/// The first of `steps` and `epochs` ends the run; one epoch where neither they nor max_time are
/// set. From `place` on, epochs take the steps that their samples need with this batch size. Throws
/// Error{usage} where the samples make no batch, or the run would never end.
RunLength run_length(const RunConfig& config, std::int64_t samples, const RunPlace& place = {});

/// Says whether something that happens every `duration` is due after a step; times count from when
/// this was made. Nothing is ever due without a duration.
class Every {
 public:
  Every(const std::optional<Duration>& duration, const RunLength& length);
  bool due(std::uint64_t step) { return due(step, is_time_up()); }
  /// Like `due`, but changes nothing: `due` still has to be asked.
  bool is_due(std::uint64_t step) const { return is_due(step, is_time_up()); }
  /// As above, where another clock says whether the time is up.
  bool due(std::uint64_t step, bool is_time_up);
  bool is_due(std::uint64_t step, bool is_time_up) const;
  /// Whether the time is up, for a duration that is a time.
  bool is_time_up() const;

 private:
  std::optional<Duration> duration_;
  std::int64_t steps_ = 0, origin_ = 0;
  std::chrono::steady_clock::time_point last_;
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tandem
