#include "engine/train/loop/run_log.h"

#include <algorithm>

#include "engine/logs/log_members.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void RunLog::say(const std::string& text) {
  if (run_.rank() > 0) return;
  note(text);
  observer_.message(text);
}

void RunLog::note(const std::string& text) {
  if (run_.directory)
    run_.directory->log_text(text);
  else
    notes_.push_back(text);
}

void RunLog::report_saved(const std::string& path) const {
  if (run_.rank() == 0) observer_.saved(path, run_.position.step);
}

void RunLog::log_error(const Error& error) {
  if (!run_.directory || run_.rank() > 0) return;
  try {
    run_.directory->log_text(error.what());
  } catch (const Error&) {  // a full disk: the error itself counts
  }
}

void RunLog::write_notes() {
  for (const std::string& note : notes_) run_.directory->log_text(note);
  notes_.clear();
}

void RunLog::open_formats() {
  if (run_.rank() > 0) return;
  run_.directory->log_also(run_.config.log.also, run_.position.step);
  for (const auto& log : run_.directory->logs()) {
    if (log->wants_graph()) log->add_graph(run_.forward());
  }
  if (run_.directory->logs().empty()) return;
  for (const std::string& path : histograms_.left_out(run_.states))
    say("log.histograms: " + path + " is left out, since it is sharded over the ranks");
}

void RunLog::begin() { line_ = {Clock::now(), run_.position.samples, 0}; }

double RunLog::seconds_left() const {
  const std::uint64_t step = run_.position.step;
  if (step <= run_.first_step) return -1;
  const double passed = seconds_since(run_.started);
  double left = -1;
  if (run_.length.is_limited()) {
    const auto all = static_cast<std::uint64_t>(run_.length.steps);
    const auto done = static_cast<double>(step - run_.first_step);
    left = step >= all ? 0 : passed / done * static_cast<double>(all - step);
  }
  if (!run_.config.max_seconds) return left;
  const double until = std::max(0.0, *run_.config.max_seconds - passed);
  return left < 0 ? until : std::min(left, until);
}

TrainingProgress RunLog::progress_now() const {
  TrainingProgress progress;
  progress.step = run_.position.step;
  progress.epoch = run_.length.epoch(static_cast<std::int64_t>(run_.position.step));
  if (run_.length.is_limited()) {
    progress.steps = run_.length.steps;
    progress.epochs = run_.length.epoch(run_.length.steps);
  }
  progress.seconds = seconds_since(run_.started);
  progress.seconds_left = seconds_left();
  return progress;
}

void RunLog::report(const TrainingProgress& progress) const {
  if (run_.rank() == 0) observer_.progress(progress);
}

void RunLog::log_step(const StepResult& result, const std::optional<SlowestRank>& slowest) {
  const double interval = seconds_since(line_.at);
  const double rate =
      interval > 0 ? static_cast<double>(run_.position.samples - line_.samples) / interval : 0;
  const double waited = run_.runner->waited_for_data();
  const double wait = interval > 0 ? std::clamp((waited - line_.waited) / interval, 0.0, 1.0) : 0;
  line_ = {Clock::now(), run_.position.samples, waited};
  TrainingProgress progress = progress_now();
  progress.samples_per_second = rate;
  if (run_.position.step > run_.first_step + 1)
    progress.data_wait = wait;  // the first one waits for the start
  progress.norms = result.norms;
  Values& values = progress.values;
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
  if (slowest) add_slowest(*slowest, values);
  run_.directory->log_metrics(run_.position.step, "", values);
}

void RunLog::add_slowest(const SlowestRank& slowest, Values& values) {
  values.emplace_back("ranks.slowest", slowest.rank);
  values.emplace_back("ranks.slowest_seconds", slowest.seconds);
  values.emplace_back("ranks.median_seconds", slowest.median);
  if (!slowest.is_worth_telling() || slowest.rank == last_reported_slowest_) return;
  last_reported_slowest_ = slowest.rank;
  say(slowest.text());
}

void RunLog::log_evaluation(const Values& values, const std::vector<MetricTable>& tables,
                            double seconds, bool is_new) {
  TrainingProgress progress = progress_now();
  progress.evaluation = true;
  progress.values = values;
  progress.samples_per_second = static_cast<double>(run_.evaluation->samples()) / seconds;
  report(progress);
  Values logged = values;
  logged.emplace_back("wall", seconds_since(run_.started));
  if (is_new) run_.directory->log_metrics(run_.position.step, "eval", logged, tables);
}

}  // namespace tandem
