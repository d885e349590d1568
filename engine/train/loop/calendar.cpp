#include "engine/train/loop/calendar.h"

namespace tandem {

Calendar::Calendar(const RunConfig& config, const RunLength& length)
    : log_(config.log.every, length),
      evaluate_(config.eval.every, length),
      save_(config.checkpoint.every, length),
      histograms_(config.log.histograms_every, length),
      last_(static_cast<std::uint64_t>(length.steps)),
      max_seconds_(config.max_seconds) {}

StepSignals Calendar::signals() const {
  return {.time_is_up = max_seconds_ && seconds_since(started_) > *max_seconds_,
          .log = log_.is_time_up(),
          .evaluate = evaluate_.is_time_up(),
          .save = save_.is_time_up()};
}

bool Calendar::logs(std::uint64_t step, const StepSignals& signals) {
  return log_.due(step, signals.log) || step == last_ || step == 1;
}

bool Calendar::needs_states(std::uint64_t step, const StepSignals& signals) const {
  return evaluate_.is_due(step, signals.evaluate) || save_.is_due(step, signals.save) ||
         histograms_.is_due(step);
}

}  // namespace tandem
