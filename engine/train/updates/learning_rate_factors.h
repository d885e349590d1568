// The learning-rate factors of a step: warm-up, then a shape of engine/schedules, or several one
// after the other; for all schedules that a run has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/loop/run_length.h"

namespace tandem {

/// lr(step) for a parameter group of learning rate `base`. Steps count from 1; the first step of a
/// warm-up of w steps has 1/w of the rate, as torch.optim.lr_scheduler.LinearLR with a start factor
/// of 1/w; the shape after it begins with the next step, and runs over the remaining ones. What is
/// counted in epochs depends on the place in the data, and so do shapes over the length of a run
/// that epochs end. Parts follow each other as in SequentialLR: each counts from its own first
/// step.
class Schedule {
 public:
  Schedule(const ScheduleConfig& config, double base_lr, const RunLength& length);
  /// Multiply a group's own rate by this.
  double factor(std::int64_t step) const;

 private:
  /// One shape; `begin`: steps of the schedule before its first one.
  struct Part {
    ScheduleShape shape;
    RunLength length;
    std::int64_t begin = 0, warmup = 0, rest = 1;

    double factor(std::int64_t step, double base_lr) const;
  };
  void add(const ScheduleShape& shape, const RunLength& length, std::int64_t begin);

  double base_lr_;
  RunLength length_;
  bool parts_by_epochs_ = false;
  std::vector<Part> parts_;  // one, with the run's own length, where the schedule has no parts
};

/// By the name of the schedule: "optimizer.schedule", "optimizer.groups.1.schedule".
using PlateauStates = std::map<std::string, PlateauState>;

/// The schedules of [optimizer], number 0, and of its groups that have one of their own.
class Schedules {
 public:
  Schedules(const OptimizerConfig& config, const RunLength& length);

  /// The number of the schedule that a group has, -1 for parameters without one.
  int of_group(int group) const;
  /// The factor of a step, including what evaluations have changed.
  double factor(int schedule, std::int64_t step) const;
  /// Sets the length of the run from here on.
  void set_length(const RunLength& length);

  /// Gets the results of an evaluation for these metrics, by name. Returns messages about changes.
  std::vector<std::string> take_in(const std::vector<MetricConfig>& metrics,
                                   const std::vector<std::pair<std::string, double>>& values);
  /// The states of the schedules that depend on evaluations; `restore` skips an unknown name.
  PlateauStates plateaus() const;
  void restore(const PlateauStates& states);

 private:
  struct One {
    std::string name;
    ScheduleConfig config;
    double base_lr;
    Schedule schedule;
    PlateauState plateau;
  };
  std::vector<One> all_;
  std::vector<int> of_group_;
};

}  // namespace tandem
