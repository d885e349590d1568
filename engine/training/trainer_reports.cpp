// The reports of a training: messages, metrics, evaluations, why it cannot continue, its summary.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "engine/training/averages/weights_in_use.h"
#include "engine/training/logs/log_members.h"
#include "engine/training/trainer_state.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void Training::Impl::say(const std::string& text) {
  if (rank() > 0) return;
  if (directory)
    directory->log_text(text);
  else
    notes.push_back(text);
  if (hooks.on_message) hooks.on_message(text);
}

void Training::Impl::log_error(const Error& error) {
  if (!directory || rank() > 0) return;
  try {
    directory->log_text(error.what());
  } catch (const Error&) {  // a full disk: the error itself counts
  }
}

double Training::Impl::seconds_left() const {
  if (position.step <= first_step) return -1;
  const double passed = seconds_since(started);
  double left = -1;
  if (length.is_limited()) {
    const auto all = static_cast<std::uint64_t>(length.steps);
    const auto done = static_cast<double>(position.step - first_step);
    left = position.step >= all ? 0 : passed / done * static_cast<double>(all - position.step);
  }
  if (!config.max_seconds) return left;
  const double until = std::max(0.0, *config.max_seconds - passed);
  return left < 0 ? until : std::min(left, until);
}

TrainingProgress Training::Impl::progress_now() const {
  TrainingProgress progress;
  progress.step = position.step;
  progress.epoch = length.epoch(static_cast<std::int64_t>(position.step));
  if (length.is_limited()) {
    progress.steps = length.steps;
    progress.epochs = length.epoch(length.steps);
  }
  progress.seconds = seconds_since(started);
  progress.seconds_left = seconds_left();
  return progress;
}

void Training::Impl::report(const TrainingProgress& progress) const {
  if (hooks.on_progress && rank() == 0) hooks.on_progress(progress);
}

void Training::Impl::log_step(const StepResult& result) {
  const double interval = seconds_since(logged_at);
  const double rate =
      interval > 0 ? static_cast<double>(position.samples - logged_samples) / interval : 0;
  const double waited = runner->waited_for_data();
  const double wait = interval > 0 ? std::clamp((waited - logged_wait) / interval, 0.0, 1.0) : 0;
  logged_at = Clock::now();
  logged_samples = position.samples;
  logged_wait = waited;
  TrainingProgress progress = progress_now();
  progress.samples_per_second = rate;
  if (position.step > first_step + 1)
    progress.data_wait = wait;  // the first one waits for the start
  progress.norms = result.norms;
  std::vector<std::pair<std::string, double>>& values = progress.values;
  values.emplace_back("loss", result.loss);
  if (result.terms.size() > 1) {
    for (const auto& [name, value] : result.terms) values.emplace_back(logged_term(name), value);
  }
  if (result.gradient_norm) values.emplace_back("gradient_norm", *result.gradient_norm);
  if (result.loss_scale) {
    values.emplace_back("loss_scale", *result.loss_scale);
    values.emplace_back("skipped_steps", static_cast<double>(result.skipped_steps));
  }
  if (result.lr) values.emplace_back("lr", *result.lr);
  report(progress);
  values.insert(values.end(), result.norms.begin(), result.norms.end());
  values.emplace_back("wall", progress.seconds);
  values.emplace_back("samples_per_second", rate);
  values.emplace_back("data.wait", wait);
  add_slowest(values);
  directory->log_metrics(position.step, "", values);
}

void Training::Impl::add_slowest(std::vector<std::pair<std::string, double>>& values) {
  if (!parts.ranks) return;
  const std::optional<SlowestRank> slowest = rank_times.take(*parts.ranks);
  if (!slowest) return;
  values.emplace_back("ranks.slowest", slowest->rank);
  values.emplace_back("ranks.slowest_seconds", slowest->seconds);
  values.emplace_back("ranks.median_seconds", slowest->median);
  if (!slowest->is_worth_telling() || slowest->rank == told_slowest) return;
  told_slowest = slowest->rank;
  say(slowest->text());
}

bool Training::Impl::evaluate() {
  if (!evaluation) return true;
  if (rank() == 0 && !watch.look(place())) refuse_bad_states();
  try {
    return measure();
  } catch (const Error& error) {  // what was trained stays; what has diverged only if it is the end
    if (is_at_end() || error.kind() != ErrorKind::diverged || data_is_the_cause) save(false, true);
    throw;
  }
}

bool Training::Impl::measure() {
  const Clock::time_point start = Clock::now();
  const std::uint64_t copied = copied_bytes();
  const auto values_now = [&] {
    const WeightsInUse in_use(states, config.eval.weights);
    return evaluation->run([&](std::int64_t samples) {
      return samples < evaluation->own_samples() && is_asked_to_stop();
    });
  }();
  if (!values_now) {
    interrupted = true;
    say("interrupted during the evaluation of step " + std::to_string(position.step));
    return true;
  }
  last_evaluation = *values_now;
  last_tables = evaluation->tables();
  other_bytes += copied_bytes() - copied;
  TrainingProgress progress = progress_now();
  progress.evaluation = true;
  progress.values = last_evaluation;
  progress.samples_per_second = static_cast<double>(evaluation->samples()) / seconds_since(start);
  report(progress);
  std::vector<std::pair<std::string, double>> values = last_evaluation;
  values.emplace_back("wall", seconds_since(started));
  if (evaluated_step != position.step) {
    evaluated_step = position.step;
    directory->log_metrics(position.step, "eval", values, last_tables);
  }
  refuse_bad_metrics();
  // A resumed run that was at its end has this evaluation already; a new eval.best has none yet.
  const bool is_known = std::exchange(position.evaluated, position.step) == position.step;
  if (!is_known) {
    take_in(last_evaluation);
    saved_is_behind = saved_step == position.step && position.step > 0;
  }
  if (is_known && position.best) return true;
  for (const auto& [name, value] : last_evaluation) {
    if (name != config.eval.best) continue;
    take_in(value);
    if (position.best_step != position.step) continue;
    if (saved_step == position.step && !saved_is_behind)
      write_best();
    else
      save(is_at_end());
  }
  return !patience_has_run_out();
}

TrainingResult Training::Impl::finish() {
  TrainingResult result;
  result.run_dir = directory->path();
  result.steps = position.step;
  result.loss = last_loss;
  result.evaluation = last_evaluation;
  result.tables = last_tables;
  result.interrupted = interrupted;
  if (position.best) {
    result.best_metric = position.best_metric;
    result.best_value = *position.best;
    result.best_step = position.best_step;
  }
  if (!interrupted && rank() == 0) {
    nlohmann::ordered_json summary{{"steps", position.step}, {"samples", position.samples}};
    if (std::isfinite(last_loss)) summary["loss"] = last_loss;
    if (states.has(loss_scale_state)) {
      summary["loss_scale"] = states.read(loss_scale_state).number(0);
      summary["skipped_steps"] = states.read(skipped_steps_state).as<std::int64_t>()[0];
    }
    summary["wall"] = seconds_since(started);
    const std::uint64_t bytes = copied_bytes() - other_bytes;
    if (bytes > 0 && position.step > first_step) {
      summary["copied_bytes_per_step"] =
          static_cast<double>(bytes) / static_cast<double>(position.step - first_step);
    }
    if (!data.warnings.empty()) summary["warnings"] = data.warnings;
    for (const auto& [name, value] : last_evaluation) summary["eval"][name] = value;
    if (position.best)
      summary["best"] = {{"metric", position.best_metric},
                         {"value", *position.best},
                         {"step", position.best_step}};
    directory->write_file("summary.json", summary.dump(2) + "\n");
  }
  return result;
}

}  // namespace tandem
