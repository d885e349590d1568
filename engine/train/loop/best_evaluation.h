// The best evaluation of a run so far, with the patience that is left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/loop/run_log.h"

namespace tandem {

/// Works on the best value, the step of the best checkpoint and the evaluations without a better
/// one that the run's position has.
class BestEvaluation {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  BestEvaluation(Run& run, RunLog& log) : run_(run), log_(log) {}

  /// Continues after a checkpoint: forgets the best value of another metric, adds an evaluation
  /// that the log of the run has and the checkpoint lacks (of the step `evaluated`, the last one
  /// there). True: so the checkpoint of that step is behind.
  bool resume(std::optional<std::uint64_t> evaluated);
  /// Updates the learning rates with the values of an evaluation.
  void update_schedules(const Values& values);
  /// Updates best and patience with the value of eval.best after this step.
  void record(double value);
  /// Whether the last value was the best one.
  bool is_now() const { return run_.position.best_step == run_.position.step; }
  /// Makes `checkpoints/best` name the best checkpoint.
  void write() const;

  /// Whether `eval.patience` evaluations, the last ones, were not better.
  bool patience_has_run_out() const;
  /// A sentence about that.
  std::string not_improved() const;

 private:
  /// Whether the best value so far is one of this configuration's eval.best.
  bool is_of_this_metric() const;
  bool larger_is_better() const;
  /// Records the evaluation after this step that metrics.jsonl has.
  void record_logged(bool is_measured_anew);

  Run& run_;
  RunLog& log_;
};

}  // namespace tandem
