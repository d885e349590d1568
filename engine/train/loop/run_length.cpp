#include "engine/train/loop/run_length.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/graph/error.h"

namespace tandem {
namespace {

/// Steps that a run of one batch size would have made up to a place in the data. Its epoch is
/// counted from the end: resumed in the middle, its steps begin there.
std::int64_t steps_to(const DataPosition& data, std::int64_t samples, std::int64_t steps_per_epoch,
                      std::int64_t batch_size, bool drop_last) {
  const std::int64_t left = std::max<std::int64_t>(0, samples - data.sample);
  return (data.epoch + 1) * steps_per_epoch - tandem::steps_per_epoch(left, batch_size, drop_last);
}

}  // namespace

bool RunLength::has_passed(const Duration& duration, std::int64_t step) const {
  return duration.unit != Duration::Unit::seconds &&
         since_start(step, duration.unit == Duration::Unit::epochs) >=
             duration.steps(steps_per_epoch);
}

RunLength run_length(const RunConfig& config, std::int64_t samples, const RunPlace& place) {
  const bool drop_last = config.data && config.data->drop_last;
  RunLength length;
  length.steps_per_epoch = steps_per_epoch(samples, config.batch_size, drop_last);
  if (length.steps_per_epoch < 1) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{
            .message = "there are fewer samples than one batch, and drop_last leaves them out",
            .file = config.file,
            .expected = "at least " + std::to_string(config.batch_size) + " samples",
            .got = std::to_string(samples),
            .fix = "lower batch_size, or set data.drop_last = false"});
  }
  length.origin = place.step - steps_to(place.data, samples, length.steps_per_epoch,
                                        config.batch_size, drop_last);
  // The run ends at the first of steps and epochs.
  length.steps = config.steps.value_or(RunLength::unlimited);
  if (config.epochs || (!config.steps && !config.max_seconds)) {
    const double steps = config.epochs.value_or(1) * static_cast<double>(length.steps_per_epoch);
    constexpr double most_steps = 1e15;
    if (steps > most_steps) {
      throw Error(ErrorKind::usage,
                  Diagnostic{.message = "the run would never end",
                             .file = config.file,
                             .path = "epochs",
                             .expected = "at most 1e15 steps",
                             .got = std::to_string(length.steps_per_epoch) + " steps an epoch",
                             .fix = "lower epochs, or leave it out and set steps or max_time"});
    }
    const std::int64_t whole = std::max<std::int64_t>(1, std::llround(steps));
    // Counted with another batch size, an end that has passed may be at no step of the run.
    const std::int64_t end =
        length.origin == 0 ? whole : std::max(whole + length.origin, place.step);
    length.ends_by_epochs = end <= length.steps;
    length.steps = std::min(length.steps, end);
  }
  return length;
}

Every::Every(const std::optional<Duration>& duration, const RunLength& length)
    : duration_(duration), last_(std::chrono::steady_clock::now()) {
  if (!duration_) return;
  steps_ = duration_->steps(length.steps_per_epoch);
  if (duration_->unit == Duration::Unit::epochs) origin_ = length.origin;
}

bool Every::is_time_up() const {
  return duration_ && duration_->unit == Duration::Unit::seconds &&
         seconds_since(last_) >= duration_->value;
}

bool Every::is_due(std::uint64_t step, bool is_time_up) const {
  if (!duration_) return false;
  if (duration_->unit == Duration::Unit::seconds) return is_time_up;
  return (static_cast<std::int64_t>(step) - origin_) % steps_ == 0;
}

bool Every::due(std::uint64_t step, bool is_time_up) {
  const bool is_due_now = is_due(step, is_time_up);
  if (is_due_now) last_ = std::chrono::steady_clock::now();
  return is_due_now;
}

}  // namespace tandem
