// Where a step is in its schedule: the input of every schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/config/keys/config_types.h"
#include "engine/config/keys/key_notes.h"

namespace tandem {

/// For a key with one duration or several, none of which may be a time.
inline constexpr auto in_steps = no_times("a schedule counts steps or epochs");

/// A step after the warm-up. Steps are counted from 0, as those of PyTorch's schedulers.
struct SchedulePlace {
  /// Counted as steps, and as steps of this batch size in the data: the two differ once a run was
  /// resumed with another batch size.
  std::int64_t by_steps = 0, by_epochs = 0;
  std::int64_t length = 1;  // steps from the end of the warm-up to the end of the run
  bool ends_by_epochs = false;
  std::int64_t steps_per_epoch = 1;
  double base_lr = 0;

  /// Steps so far, counted in the unit of the run's end.
  std::int64_t step() const { return ends_by_epochs ? by_epochs : by_steps; }
  /// The part of the run that is over, 0 to 1.
  double done() const {
    return std::min(1.0, static_cast<double>(step()) / static_cast<double>(length));
  }
  /// Steps so far, counted in the unit of `like`; and how many steps a duration has.
  std::int64_t step(const Duration& like) const {
    return like.unit == Duration::Unit::epochs ? by_epochs : by_steps;
  }
  std::int64_t steps_of(const Duration& duration) const {
    return std::max<std::int64_t>(1, duration.steps(steps_per_epoch));
  }
  /// A learning rate as a factor of the base rate.
  double factor_of(double lr) const { return base_lr == 0 ? 0 : lr / base_lr; }
};

}  // namespace tandem
