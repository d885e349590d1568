// The learning-rate factor of a step: warm-up, then constant, cosine, step or linear.
#pragma once

#include <cstdint>

#include "engine/training/run_length.h"

namespace tandem {

/// lr(step) for a parameter group of learning rate `base`. Steps count from 1; the first step of a
/// warm-up of w steps has 1/w of the rate, as torch.optim.lr_scheduler.LinearLR with a start factor
/// of 1/w; the phase after it runs over the remaining steps.
///   cosine: final + (lr - final) (1 + cos(pi t / T)) / 2, T = steps after the warm-up, t from 0
///   linear: lr + (final - lr) t / T        step: lr gamma^floor(t / step_size)
/// A warm-up or step_size in epochs, and cosine and linear of a run that epochs end, follow the
/// place in the data.
class Schedule {
 public:
  Schedule(const ScheduleConfig& config, double base_lr, const RunLength& length);
  /// Multiply a group's own rate by this.
  double factor(std::int64_t step) const;

 private:
  ScheduleConfig config_;
  double base_lr_;
  RunLength length_;
  std::int64_t warmup_ = 0, rest_ = 1, step_size_ = 1;
  bool by_epochs_ = false;  // the phase after the warm-up follows the place in the data
};

}  // namespace tandem
