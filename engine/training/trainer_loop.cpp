// The loop of a training: step by step, on accelerators with the next one launched before the loss
// of the last one is checked.
#include <cassert>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "engine/training/trainer_state.h"

namespace tandem {

TrainingResult Training::Impl::train() {
  started = logged_at = std::chrono::steady_clock::now();
  Every log_every(config.log.every, length);
  Every eval_every(config.eval.every, length);
  Every save_every(config.checkpoint.every, length);
  Every histograms_every(config.log.histograms_every, length);
  signals_now = [&] {
    return StepSignals{
        .time_is_up = config.max_seconds && seconds_since(started) > *config.max_seconds,
        .log = log_every.is_time_up(),
        .evaluate = eval_every.is_time_up(),
        .save = save_every.is_time_up()};
  };
  first_step = position.step;
  other_bytes = copied_bytes();
  runner->start(position.step, position.data);
  refuse_nan_at_start();
  watch.start(states, infinite, place(), has_parts() && rank() > 0);
  const auto goes_on = [&] {
    const bool has_patience = evaluate();
    if (!has_patience) say("stopped early: " + not_improved());
    return has_patience;
  };
  const auto told = [&] { return parts.ranks ? signals : signals_now(); };
  // Interrupted in that evaluation.
  if (first_step > 0 && evaluated_step != first_step && eval_every.due(first_step)) goes_on();
  if (saved_is_behind && !is_at_end() && !patience_has_run_out()) save(false);
  for (std::uint64_t next = first_step + 1;
       next <= static_cast<std::uint64_t>(length.steps) && !interrupted && !patience_has_run_out();
       ++next) {
    const bool last = next == static_cast<std::uint64_t>(length.steps);
    const bool logged = log_every.due(next, told().log) || last || next == 1;
    const bool watched =
        hooks.watch != nullptr && (hooks.is_watched ? hooks.is_watched(next, logged) : logged);
    if (logged) logged_step = next;
    if (watched) watched_step = next;
    // Where a step is watched, it is the only one under way.
    if (watched && runner->in_flight() > 0) judge(take());
    launch(watched ? hooks.watch : nullptr);
    if (runner->in_flight() > 1) judge(take());
    // If the states after this step are needed, or the run ends there, its loss is waited for.
    const bool ahead = runner->may_launch_ahead() && !logged && !watched &&
                       (hooks.watch == nullptr || hooks.is_watched) &&
                       !eval_every.is_due(next, told().evaluate) &&
                       !save_every.is_due(next, told().save) && !histograms_every.is_due(next) &&
                       !is_interrupted() && !told().time_is_up;
    if (ahead) continue;
    if (runner->in_flight() > 0) judge(take());
    if (histograms_every.due(next)) log_histograms();
    if (eval_every.due(next, told().evaluate) && !goes_on()) break;
    if (is_interrupted()) break;
    if (told().time_is_up) {
      say("stopped: max_time has passed");
      break;
    }
    // The save of the last step comes after its evaluation, of which it records the best.
    if (save_every.due(next, told().save) && !last) save(false);
  }
  assert(runner->in_flight() == 0);
  runner->stop();
  const bool evaluated = evaluated_step == position.step && !last_evaluation.empty();
  if (!interrupted && !evaluated) evaluate();
  save(!interrupted);
  const std::uint64_t steps = position.step - first_step;
  if (steps > 0 && static_cast<std::uint64_t>(scale_watch.in_a_row()) >= steps) {
    say(
        fmt::format("nothing was trained: {} of {} steps were skipped, their gradients "
                    "were not finite; the loss scale is {:g}",
                    steps, steps, states.read(loss_scale_state).number(0)));
  }
  TrainingResult result;
  on_all_ranks(parts.ranks.get(), "the end", [&] { result = finish(); });
  return result;
}

void Training::Impl::launch(MicroBatchWatch* watch_of_micro_batches) {
  try {
    StepSignals own;
    if (parts.ranks) {
      if (runner->in_flight() == 0) rank_times.begin(parts.devices);
      if (rank() == 0) own = signals_now();
      own.interrupted = is_asked_to_stop();
    }
    runner->launch(watch_of_micro_batches, own.number());
  } catch (const Error& error) {                       // what was trained until then stays
    if (parts.ranks && parts.ranks->failure()) throw;  // a rank is gone, nothing is to be agreed on
    while (runner->in_flight() > 0) judge(take());
    if (position.step > first_step && runner->states_are_whole()) {
      save(false, true);
      say(fmt::format("step {} is saved: --resume goes on from there", position.step) +
          (error.kind() == ErrorKind::data ? ", with --accept-changes where files of the data are "
                                             "mended or left out for that"
                                           : ""));
    }
    throw;
  }
}

StepResult Training::Impl::take() {
  StepResult result = runner->finish();
  if (parts.ranks) rank_times.end(parts.devices);
  position.step = result.step;
  position.data = result.end;
  position.samples += static_cast<std::uint64_t>(result.samples);
  last_loss = result.loss;
  signals = StepSignals::of_sum(result.signals);
  return result;
}

void Training::Impl::judge(const StepResult& result) {
  const bool logged = result.step == logged_step;
  if (logged || !std::isfinite(result.loss)) log_step(result);
  refuse_bad_loss(result);
  if (result.loss_scale)
    scale_watch.check(config, result.step, *result.loss_scale, result.skipped_steps);
  position.skipped_in_a_row = scale_watch.in_a_row();
  if (result.step == watched_step && hooks.watch != nullptr) {
    const std::string told = hooks.watch->report(result.step);
    if (!told.empty()) say(told);
    if (const std::string record = hooks.watch->record(); !record.empty() && rank() == 0)
      directory->write_file("operators.json", record);
  }
  look_at_states(result, logged);  // reads through the devices, whose record is reported first
}

std::optional<StepResult> Training::Impl::take_next() {
  if (runner->in_flight() == 0) return std::nullopt;
  return take();
}

bool Training::Impl::is_interrupted() {
  if (!interrupted) interrupted = parts.ranks ? signals.interrupted : is_asked_to_stop();
  return interrupted;
}

bool Training::Impl::is_asked_to_stop() const {
  return hooks.stop_requested && hooks.stop_requested();
}

}  // namespace tandem
