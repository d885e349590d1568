// Launches the steps of a run, takes their results.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "engine/train/group/rank_times.h"
#include "engine/train/loop/run.h"
#include "engine/train/loop/run_signals.h"
#include "engine/train/steps/micro_batch_watch.h"

namespace tandem {

/// What becomes of a step besides its training.
struct StepUse {
  bool logged = false;
  MicroBatchWatch* watch = nullptr;  // null: nothing watches it
};

/// A step that was taken: the run is after it.
struct TakenStep {
  StepResult result;
  StepUse use;
};

class Steps {
 public:
  Steps(Run& run, RunSignals& signals) : run_(run), signals_(signals) {}

  /// Launches the next step. Throws what StepRunner::launch throws.
  void launch(const StepUse& use);
  int in_flight() const { return run_.runner->in_flight(); }
  /// Waits for the oldest step that was launched: from here on the run is after that step.
  TakenStep take();
  /// The step that was launched after the one that is being checked, if any: the states already
  /// include it.
  std::optional<TakenStep> take_next();

  /// Loss of the step that was taken last. Before the first one: the loss in the log of a resumed
  /// run, or NaN.
  double last_loss() const { return last_loss_; }
  void set_last_loss(double loss) { last_loss_ = loss; }
  /// The slowest rank since the last call, which all ranks make at one point; nothing without other
  /// ranks.
  std::optional<SlowestRank> slowest_rank();

 private:
  bool has_other_ranks() const { return run_.ranks().ranks() > 1; }

  Run& run_;
  RunSignals& signals_;
  RankTimes rank_times_;
  std::array<StepUse, 2> uses_;  // the steps under way, the oldest first
  double last_loss_ = std::nan("");
};

}  // namespace tandem
