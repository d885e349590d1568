// What is due after which step of a run.
#pragma once

#include <cstdint>

#include "engine/train/group/step_signals.h"
#include "engine/train/loop/run_length.h"

namespace tandem {

/// Durations count from when this was made. `signals` say whether those that are times are up.
class Calendar {
 public:
  Calendar(const RunConfig& config, const RunLength& length);

  /// The durations that are up by this process's clock.
  StepSignals signals() const;
  /// Whether the step is logged; the first and the last one of a process always are.
  bool logs(std::uint64_t step, const StepSignals& signals);
  /// Whether something is due after the step that needs its states.
  bool needs_states(std::uint64_t step, const StepSignals& signals) const;
  bool has_histograms(std::uint64_t step) { return histograms_.due(step); }
  bool evaluates(std::uint64_t step, const StepSignals& signals) {
    return evaluate_.due(step, signals.evaluate);
  }
  /// The last step is saved after its evaluation, of which its checkpoint records the best.
  bool saves(std::uint64_t step, const StepSignals& signals) {
    return save_.due(step, signals.save) && step != last_;
  }
  /// Whether an evaluation is due after a step that an earlier process has done.
  bool evaluates_before(std::uint64_t step) { return evaluate_.due(step); }

 private:
  Every log_, evaluate_, save_, histograms_;
  std::uint64_t last_ = 0;
  std::optional<double> max_seconds_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tandem
