// How many of a run's steps each parameter was frozen in. Optimizers count the steps of a parameter
// by itself, as PyTorch does: its first one corrects the bias of moments that have just begun, and
// while it is frozen the count stands still.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/training/training_graph.h"

namespace tandem {

class MissedSteps {
 public:
  /// From here on `request` says what is trained of the forward graph; `taken` steps were taken so
  /// far, not counting those that a loss scale has skipped. Returns the steps that parameters which
  /// are trained now have missed, by name; 0 where they are not named.
  MissedStepCounts change(const Graph& forward, const TrainingRequest& request, std::int64_t taken);
  /// After so many steps: of all that have missed any.
  MissedStepCounts after(std::int64_t taken) const;
  /// What `after` has said of the run so far; nothing where nobody knows: what is frozen in the
  /// next `change` then was never trained.
  void restore(std::optional<MissedStepCounts> counts);
  bool is_any_frozen() const { return !frozen_since_.empty(); }

 private:
  MissedStepCounts missed_;        // of a frozen one: before it froze
  MissedStepCounts frozen_since_;  // steps that were taken then
  bool is_known_ = true;
};

}  // namespace tandem
