// What clocks and the user ask of a run, alike on all of its ranks.
#pragma once

#include "engine/train/loop/calendar.h"
#include "engine/train/loop/training_observer.h"

namespace tandem {

/// A single process follows its own clock. Of several ranks each adds its signals to a step, and
/// all follow the sum that the step returns.
class RunSignals {
 public:
  RunSignals(const RankPlace& place, TrainingObserver& observer)
      : place_(place), observer_(observer) {}

  /// The calendar of the steps that follow, which has to outlive them.
  void follow(const Calendar& calendar) { calendar_ = &calendar; }
  /// This rank's signals for the next step.
  StepSignals own() const;
  /// The sum that a step has returned.
  void take(double sum) { agreed_ = StepSignals::of_sum(sum); }
  /// What holds now.
  StepSignals now() const;

  /// Whether this process was asked to stop, by now.
  bool is_asked_to_stop() const { return observer_.is_asked_to_stop(); }
  /// Whether the run ends early; once it does, it stays so.
  bool is_interrupted();
  void interrupt() { interrupted_ = true; }
  /// Whether it was found to end early before.
  bool was_interrupted() const { return interrupted_; }

 private:
  RankPlace place_;
  TrainingObserver& observer_;
  const Calendar* calendar_ = nullptr;
  StepSignals agreed_;  // several ranks: their sum in the newest step that was taken
  bool interrupted_ = false;
};

}  // namespace tandem
