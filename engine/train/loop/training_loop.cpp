#include "engine/train/loop/training_loop.h"

#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/train/group/gathered.h"

namespace tandem {

TrainingResult TrainingLoop::train() {
  Calendar calendar(run.config, run.length);
  run.started = std::chrono::steady_clock::now();
  run.first_step = run.position.step;
  run.other_bytes = run.copied_bytes();
  signals.follow(calendar);
  log.begin();
  run.runner->start(run.position.step, run.position.data);
  guard.begin();
  const bool has_steps = run.first_step > 0;
  // Interrupted in that evaluation.
  if (has_steps && !evaluation.is_logged() && calendar.evaluates_before(run.first_step)) evaluate();
  if (saver.is_behind() && !run.is_at_end() && !best.patience_has_run_out()) saver.save(false);
  const auto last = static_cast<std::uint64_t>(run.length.steps);
  for (std::uint64_t step = run.first_step + 1; step <= last && !ends_here(); ++step) {
    const StepUse use = use_of(step, calendar.logs(step, signals.now()));
    // Where a step is watched, it is the only one under way.
    if (use.watch != nullptr && steps.in_flight() > 0) take_and_check();
    launch(use);
    if (steps.in_flight() > 1) take_and_check();
    if (may_go_ahead(step, use, calendar)) continue;
    if (steps.in_flight() > 0) take_and_check();
    if (!do_what_is_due(step, calendar)) break;
  }
  assert(steps.in_flight() == 0);
  run.runner->stop();
  const bool is_interrupted = signals.was_interrupted();
  const bool is_evaluated = evaluation.is_logged() && !evaluation.last().values.empty();
  if (!is_interrupted && !is_evaluated) evaluation.evaluate();
  saver.save(!signals.was_interrupted());
  report_skipped_steps();
  on_all_ranks(run.ranks(), "the end", [&] {
    if (!signals.was_interrupted() && run.rank() == 0) write_summary();
  });
  return result();
}

bool TrainingLoop::evaluate() {
  const bool has_patience = evaluation.evaluate();
  if (!has_patience) log.say("stopped early: " + best.not_improved());
  return has_patience;
}

bool TrainingLoop::ends_here() const {
  return signals.was_interrupted() || best.patience_has_run_out();
}

StepUse TrainingLoop::use_of(std::uint64_t step, bool is_logged) const {
  StepUse use{.logged = is_logged};
  MicroBatchWatch* const watch = observer->watch();
  if (watch != nullptr && watch->watches(step, is_logged)) use.watch = watch;
  return use;
}

// If the states after this step are needed, or the run ends there, its loss is waited for.
bool TrainingLoop::may_go_ahead(std::uint64_t step, const StepUse& use, const Calendar& calendar) {
  const MicroBatchWatch* const watch = observer->watch();
  return run.runner->may_launch_ahead() && !use.logged && use.watch == nullptr &&
         (watch == nullptr || watch->lets_steps_overlap()) &&
         !calendar.needs_states(step, signals.now()) && !signals.is_interrupted() &&
         !signals.now().time_is_up;
}

bool TrainingLoop::do_what_is_due(std::uint64_t step, Calendar& calendar) {
  if (calendar.has_histograms(step)) log.log_histograms();
  if (calendar.evaluates(step, signals.now()) && !evaluate()) return false;
  if (signals.is_interrupted()) return false;
  if (signals.now().time_is_up) {
    log.say("stopped: max_time has passed");
    return false;
  }
  if (calendar.saves(step, signals.now())) saver.save(false);
  return true;
}

void TrainingLoop::launch(const StepUse& use) {
  try {
    steps.launch(use);
  } catch (const Error& error) {       // what was trained until then stays
    if (run.ranks().failure()) throw;  // a rank is gone
    while (steps.in_flight() > 0) take_and_check();
    if (run.position.step > run.first_step && run.runner->states_are_whole()) {
      saver.save(false, true);
      log.say(
          fmt::format("step {} is saved: --resume continues from there", run.position.step) +
          (error.kind() == ErrorKind::data
               ? ", with --accept-changes if files of the data are corrected or left out for that"
               : ""));
    }
    throw;
  }
}

void TrainingLoop::report_skipped_steps() {
  const std::uint64_t done = run.position.step - run.first_step;
  if (done == 0 || static_cast<std::uint64_t>(check.skipped_in_a_row()) < done) return;
  log.say(
      fmt::format("nothing was trained: {} of {} steps were skipped, their gradients "
                  "were not finite; the loss scale is {:g}",
                  done, done, run.states.read(loss_scale_state).number(0)));
}

void TrainingLoop::walk(std::int64_t count,
                        FunctionRef<bool(double loss, std::optional<double> lr)> goes_on) {
  run.runner->start(run.position.step, run.position.data);
  bool is_over = false;
  for (std::int64_t i = 0; i < count && !is_over; ++i) {
    run.runner->launch();
    const StepResult result = run.runner->finish();
    run.position.step = result.step;
    run.position.data = result.end;
    is_over = !goes_on(result.loss, result.lr);
  }
  run.runner->stop();
}

Error TrainingLoop::with_newest_checkpoint(const Error& error) const {
  if (error.kind() != ErrorKind::diverged || !run.directory || error.diagnostics().empty())
    return error;
  std::vector<Diagnostic> problems = error.diagnostics();
  std::string& fix = problems[0].fix;
  const std::vector<std::string> kept = list_checkpoints(run.directory->checkpoints());
  fix += fix.empty() ? "" : "; ";
  fix += kept.empty() ? "no checkpoint was saved before: a shorter checkpoint.every, now " +
                            to_string(run.config.checkpoint.every) + ", keeps more of a run"
                      : "the newest good checkpoint is " + kept.back() +
                            ": --resume continues from there, nothing newer was saved";
  return {error.kind(), std::move(problems)};
}

TrainingResult TrainingLoop::result() const {
  const TrainingPosition& position = run.position;
  TrainingResult result;
  result.run_dir = run.directory->path();
  result.steps = position.step;
  result.loss = steps.last_loss();
  result.evaluation = evaluation.last().values;
  result.tables = evaluation.last().tables;
  result.interrupted = signals.was_interrupted();
  if (position.best) {
    result.best_metric = position.best_metric;
    result.best_value = *position.best;
    result.best_step = position.best_step;
  }
  return result;
}

void TrainingLoop::write_summary() const {
  const TrainingPosition& position = run.position;
  nlohmann::ordered_json summary{{"steps", position.step}, {"samples", position.samples}};
  if (std::isfinite(steps.last_loss())) summary["loss"] = steps.last_loss();
  if (run.states.has(loss_scale_state)) {
    summary["loss_scale"] = run.states.read(loss_scale_state).number(0);
    summary["skipped_steps"] = run.states.read(skipped_steps_state).as<std::int64_t>()[0];
  }
  summary["wall"] = seconds_since(run.started);
  const std::uint64_t bytes = run.copied_bytes() - run.other_bytes;
  if (bytes > 0 && position.step > run.first_step) {
    summary["copied_bytes_per_step"] =
        static_cast<double>(bytes) / static_cast<double>(position.step - run.first_step);
  }
  if (!run.data.warnings.empty()) summary["warnings"] = run.data.warnings;
  for (const auto& [name, value] : evaluation.last().values) summary["eval"][name] = value;
  if (position.best) {
    summary["best"] = {
        {"metric", position.best_metric}, {"value", *position.best}, {"step", position.best_step}};
  }
  run.directory->write_file("summary.json", summary.dump(2) + "\n");
}

}  // namespace tandem
