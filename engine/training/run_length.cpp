#include "engine/training/run_length.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/graph/error.h"
#include "engine/training/data/loader.h"

namespace tandem {

RunLength run_length(const RunConfig& config, std::int64_t samples) {
  const bool drop_last = config.data && config.data->drop_last;
  RunLength length;
  length.steps_per_epoch = steps_per_epoch(samples, config.batch_size, drop_last);
  if (length.steps_per_epoch < 1) {
    Diagnostic d;
    d.file = config.file;
    d.message = "there are fewer samples than one batch, and drop_last leaves them out";
    d.expected = "at least " + std::to_string(config.batch_size) + " samples";
    d.got = std::to_string(samples);
    d.fix = "lower batch_size, or set data.drop_last = false";
    throw Error(ErrorKind::usage, std::move(d));
  }
  // The first of steps and epochs ends the run.
  length.steps = config.steps.value_or(RunLength::unlimited);
  if (config.epochs || (!config.steps && !config.max_seconds)) {
    const double steps = config.epochs.value_or(1) * static_cast<double>(length.steps_per_epoch);
    constexpr double most_steps = 1e15;
    if (steps > most_steps) {
      Diagnostic d;
      d.file = config.file;
      d.path = "epochs";
      d.message = "the run would never end";
      d.expected = "at most 1e15 steps";
      d.got = std::to_string(length.steps_per_epoch) + " steps an epoch";
      d.fix = "lower epochs, or leave it away and set steps or max_time";
      throw Error(ErrorKind::usage, std::move(d));
    }
    const std::int64_t whole = std::max<std::int64_t>(1, std::llround(steps));
    length.steps = std::min(length.steps, whole);
  }
  return length;
}

Every::Every(const std::optional<Duration>& duration, std::int64_t steps_per_epoch)
    : duration_(duration), last_(std::chrono::steady_clock::now()) {
  if (duration_) steps_ = duration_->steps(steps_per_epoch);
}

bool Every::due(std::uint64_t step) {
  if (!duration_) return false;
  if (duration_->unit != Duration::Unit::seconds) return step % steps_ == 0;
  if (seconds_since(last_) < duration_->value) return false;
  last_ = std::chrono::steady_clock::now();
  return true;
}

}  // namespace tandem
