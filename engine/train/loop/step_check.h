// Checks a finished step: logs it, ends the run where it cannot continue after it.
#pragma once

#include "engine/train/graph/loss_scale.h"
#include "engine/train/loop/saver.h"
#include "engine/train/loop/steps.h"

namespace tandem {

class StepCheck {
 public:
  StepCheck(Run& run, RunLog& log, FiniteGuard& guard, Saver& saver, Steps& steps)
      : run_(run), log_(log), guard_(guard), saver_(saver), steps_(steps) {}

  /// Continues a run whose loss scale has skipped `skipped` steps, the last `in_a_row` in a row.
  void resume(std::int64_t skipped, std::int64_t in_a_row) {
    scale_watch_.start(skipped, in_a_row);
  }
  /// Throws where the run cannot continue after the step, and then does not save it.
  void check(const TakenStep& step);
  /// How many steps up to the last one the loss scale has skipped.
  std::int64_t skipped_in_a_row() const { return scale_watch_.in_a_row(); }

 private:
  void log(const TakenStep& step);
  void note_skipped(const StepResult& result);
  /// Saves the step first where only the data is at fault.
  [[noreturn]] void refuse_bad_loss(const StepResult& result);
  /// Whether all states are as good as before the step; all ranks ask.
  bool are_states_whole(bool is_possible);
  /// Checks states: a part of them where the step is logged, all where its gradients were not
  /// finite and were not left out.
  void check_states(const TakenStep& step);

  Run& run_;
  RunLog& log_;
  FiniteGuard& guard_;
  Saver& saver_;
  Steps& steps_;
  LossScaleWatch scale_watch_;
};

}  // namespace tandem
