// Evaluates a run after a step, saves it where that was the best one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/loop/run_signals.h"
#include "engine/train/loop/saver.h"

namespace tandem {

/// The newest evaluation of a run.
struct LastEvaluation {
  std::vector<std::pair<std::string, double>> values;  // empty: this process has made none
  std::vector<MetricTable> tables;
  std::optional<std::uint64_t> step;  // the last evaluation in metrics.jsonl
};

class RunEvaluation {
 public:
  RunEvaluation(Run& run, RunLog& log, FiniteGuard& guard, Saver& saver, RunSignals& signals)
      : run_(run), log_(log), guard_(guard), saver_(saver), signals_(signals) {}

  /// Continues a run whose log has an evaluation of that step.
  void resume(std::optional<std::uint64_t> step) { last_.step = step; }
  /// Evaluates the run after this step; false where patience has run out. Saves what was trained
  /// before it throws.
  bool evaluate();
  const LastEvaluation& last() const { return last_; }
  /// Whether metrics.jsonl has an evaluation of this step.
  bool is_logged() const { return last_.step == run_.position.step; }

 private:
  bool measure();
  HostTensor read_whole(const std::string& state) const;
  /// Updates learning rates, best and patience; false where patience has run out.
  bool record();

  Run& run_;
  RunLog& log_;
  FiniteGuard& guard_;
  Saver& saver_;
  RunSignals& signals_;
  LastEvaluation last_;
};

}  // namespace tandem
