// How many of a run's steps each parameter was frozen in. Optimizers count the steps of each
// parameter separately, as PyTorch does: its first one corrects the bias of moments that have just
// begun, and while it is frozen the count does not change.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/train/graph/training_graph.h"

namespace tandem {

class MissedSteps {
 public:
  /// From here on `request` says which parameters of the forward graph train; `taken` steps were
  /// taken so far, not counting those that a loss scale has skipped. Returns the steps that the
  /// parameters which train from here on have missed, by name; 0 where they are not named.
  MissedStepCounts change(const Graph& forward, const TrainingRequest& request, std::int64_t taken);
  /// The missed steps after `taken` steps, for all parameters that have missed any.
  MissedStepCounts after(std::int64_t taken) const;
  /// Restores the result of `after` for the run so far.
  void restore(MissedStepCounts counts);
  bool is_any_frozen() const { return !frozen_since_.empty(); }

 private:
  MissedStepCounts missed_;        // for a frozen one: before it froze
  MissedStepCounts frozen_since_;  // steps that were taken then
};

}  // namespace tandem
