#include "engine/train/checkpoints/resume_checks.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "engine/metrics/metric.h"
#include "engine/train/checkpoints/run_directory.h"
#include "engine/train/loop/run_length.h"

namespace tandem {
namespace {

template <class Number>
void refuse_other(const char* key, const char* what, Number before, Number now,
                  const RunConfig& config) {
  if (before == now) return;
  Diagnostic d;
  d.file = config.file;
  d.path = key;
  d.message = std::string("the run was started with another ") + what;
  d.expected = fmt::format("{}", before);
  d.got = fmt::format("{}", now);
  d.fix = fmt::format("set {} = {}, or start a new run without --resume", key, before);
  throw Error(ErrorKind::usage, std::move(d));
}

/// The checkpoint stays: what it contradicts may be what is wrong.
[[noreturn]] void contradicts(const std::string& checkpoint, std::string key, std::string message,
                              std::string expected, std::string got) {
  throw Error(ErrorKind::data,
              {.message = std::move(message),
               .file = checkpoint + "/state.json",
               .path = std::move(key),
               .expected = std::move(expected),
               .got = std::move(got),
               .fix = "move this checkpoint's folder elsewhere to continue from an older one"});
}

}  // namespace

void refuse_other_split(const TrainingPosition& before, const TrainingPosition& now,
                        const RunConfig& config) {
  refuse_other("seed", "seed", before.seed, now.seed, config);
  refuse_other("data.eval.fraction", "held-out part", before.held_out, now.held_out, config);
}

void refuse_other_place(const TrainingPosition& before, std::int64_t samples,
                        std::int64_t steps_per_epoch, const std::string& checkpoint) {
  constexpr const char* same_data =
      "resume with the data of the first run, or start a new run without --resume";
  Diagnostic d;
  d.file = checkpoint + "/state.json";
  if (before.data.sample >= samples) {
    d.path = "data.sample";
    d.message = "the run stopped after the last sample of this training data";
    d.expected = fmt::format("a sample below {}", samples);
    d.got = std::to_string(before.data.sample);
    d.fix = same_data;
    throw Error(ErrorKind::usage, std::move(d));
  }
  std::int64_t seen = 0;  // drop_last leaves some out
  if (!__builtin_mul_overflow(before.data.epoch, samples, &seen) &&
      !__builtin_add_overflow(seen, before.data.sample, &seen) &&
      before.samples > static_cast<std::uint64_t>(seen)) {
    d.path = "samples";
    d.message = "the run has seen more samples than this training data has up to its place";
    d.expected = fmt::format("at most {}: {} epochs of {} and {}", seen, before.data.epoch, samples,
                             before.data.sample);
    d.got = std::to_string(before.samples);
    d.fix = same_data;
    throw Error(ErrorKind::usage, std::move(d));
  }
  const std::int64_t most = (std::numeric_limits<std::int64_t>::max() >> 1) / steps_per_epoch;
  if (before.data.epoch >= most) {
    d.path = "data.epoch";
    d.message = "more epochs of this data than a run can make";
    d.expected = fmt::format("an epoch below {}", most);
    d.got = std::to_string(before.data.epoch);
    d.fix = "resume from another checkpoint";
    throw Error(ErrorKind::data, std::move(d));
  }
}

void refuse_other_buckets(const TrainingPosition& before, const RunConfig& config) {
  // A run that had no buckets may have changed its batch size within this epoch.
  const bool is_at_step = before.data.sample % config.batch_size == 0;
  if (before.data.sample == 0 || (before.batch_size == config.batch_size && is_at_step)) return;
  Diagnostic d;
  d.file = config.file;
  d.path = "batch_size";
  d.message = "with data.buckets the batch size changes between epochs only";
  d.expected = before.batch_size == config.batch_size
                   ? "an epoch whose steps have all been of this size"
                   : std::to_string(before.batch_size);
  d.got = before.batch_size == config.batch_size
              ? fmt::format("{} samples of it read", before.data.sample)
              : std::to_string(config.batch_size);
  d.fix = "resume from a checkpoint at the end of an epoch, or with the batch size that it has";
  throw Error(ErrorKind::usage, std::move(d));
}

namespace {

/// For a stretch of steps: how long the run would be with its batches, and its last step that has
/// decided what is frozen.
struct PastLength {
  RunLength length;
  std::int64_t last = 0;
};

std::vector<PastLength> past_lengths(const TrainingPosition& p, const RunConfig& config) {
  std::vector<PastLength> past;
  RunPlace place;
  for (std::size_t i = 0; i < p.batches.size(); ++i) {
    const BatchStretch& stretch = p.batches[i];
    const std::uint64_t end = i + 1 < p.batches.size() ? p.batches[i + 1].from_step : p.step;
    RunConfig then = config;
    then.batch_size = stretch.batch_size;
    if (then.data) then.data->drop_last = stretch.drop_last;
    place.step = static_cast<std::int64_t>(stretch.from_step);
    past.push_back({run_length(then, stretch.samples, place),
                    static_cast<std::int64_t>(std::max(end, stretch.from_step + 1) - 1)});
    const std::optional<StepsTaken> taken =
        after_steps(place.data, end - stretch.from_step, stretch.samples, stretch.batch_size,
                    stretch.drop_last);
    if (taken) place.data = taken->end;  // as read_position has found
  }
  return past;
}

}  // namespace

void refuse_other_thaws(const TrainingPosition& before, const RunConfig& config,
                        const std::string& checkpoint) {
  if (before.thawed.empty() || before.step == 0) return;
  const std::vector<PastLength> past = past_lengths(before, config);
  for (const FreezeRule& rule : config.parameters.freeze) {
    const auto saved = before.thawed.find(to_string(rule));
    if (saved == before.thawed.end() || !rule.until) continue;
    const auto has_passed = [&](const PastLength& then) {
      return then.length.has_passed(*rule.until, then.last);
    };
    // With other batches before, it may have ended earlier than these say.
    const bool expected =
        saved->second ? std::any_of(past.begin(), past.end(), has_passed) : has_passed(past.back());
    if (saved->second == expected) continue;
    contradicts(checkpoint, "thawed." + saved->first,
                fmt::format("not possible after {} steps of this run", before.step),
                expected ? "true" : "false", saved->second ? "true" : "false");
  }
}

void refuse_other_best(const TrainingPosition& before, const RunConfig& config,
                       const std::string& run_dir, const std::string& checkpoint) {
  const std::string& metric = before.best_metric;
  if (!before.best || metric != config.eval.best) return;
  const bool larger_is_better = better_of(config.eval.metrics, metric) == Better::larger;
  if (before.larger_is_better != larger_is_better) {
    contradicts(checkpoint, "best.better", "not the better direction of " + metric,
                larger_is_better ? "larger" : "smaller", larger_is_better ? "smaller" : "larger");
  }
  const double best = *before.best;
  bool knows_best = false, knows_last = false;
  std::int64_t not_better = 0;
  for (const auto& [step, value] : RunDirectory::evaluations(run_dir, metric)) {
    const std::string line = fmt::format("metrics.jsonl has another {} at step {}", metric, step);
    knows_best = knows_best || step == before.best_step;
    knows_last = knows_last || step == before.evaluated;
    if (step == before.best_step && value != best)
      contradicts(checkpoint, "best.value", line, fmt::format("{}", value),
                  fmt::format("{}", best));
    if (step <= before.best_step || step > before.evaluated) continue;
    if (larger_is_better ? value > best : value < best)
      contradicts(checkpoint, "best",
                  "metrics.jsonl has a better " + metric + fmt::format(" at step {}", step),
                  fmt::format("{}", value), fmt::format("{} at step {}", best, before.best_step));
    ++not_better;
  }
  const bool knows_all = knows_best && knows_last;
  const std::int64_t counted = before.evaluations_without_better;
  if (knows_all ? counted != not_better : counted < not_better) {
    contradicts(checkpoint, "evaluations_without_better",
                "metrics.jsonl has another number of evaluations since the best one",
                std::to_string(not_better), std::to_string(counted));
  }
}

void refuse_more_skipped(const TrainingPosition& before, std::int64_t skipped,
                         const std::string& checkpoint) {
  if (before.skipped_in_a_row <= skipped) return;
  contradicts(checkpoint, "skipped_in_a_row", "more steps than were skipped in the whole run",
              fmt::format("at most {}", skipped), std::to_string(before.skipped_in_a_row));
}

void go_on_with(const BatchStretch& now, TrainingPosition& position) {
  if (position.batches.back().is_as(now)) return;
  if (position.batches.back().from_step == position.step) position.batches.pop_back();
  position.batches.push_back(now);
  position.batches.back().from_step = position.step;
}

}  // namespace tandem
