#include "engine/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/training/check_finite.h"
#include "engine/training/check_integers.h"
#include "engine/training/data/id_functions.h"
#include "engine/training/finite_check.h"
#include "engine/training/initialise.h"
#include "engine/training/parameter_choice.h"
#include "engine/training/trainer_state.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Training::Training(RunConfig config, RunParts parts, DataSets data, TrainingHooks hooks)
    : impl_(new Impl) {
  Impl& my = *impl_;
  my.config = std::move(config);
  my.parts = std::move(parts);
  my.data = std::move(data);
  my.hooks = std::move(hooks);
  const std::int64_t samples = my.data.train->samples();
  my.length = run_length(my.config, samples);
  my.position.seed = my.config.seed;
  my.position.held_out = my.config.data ? my.config.data->eval_fraction : 0;
  my.position.batch_size = my.config.batch_size;
  my.position.vocabularies = my.vocabulary_hashes();
  my.position.fingerprint = my.parts.fingerprint;
  const Graph forward = my.forward();
  my.data.train = zero_out_of_range(my.config, forward, my.data.train);
  my.data.eval = zero_out_of_range(my.config, forward, my.data.eval);
  my.runner = std::make_unique<StepRunner>(my.config, my.parts, my.data.train, my.length, my.states,
                                           my.arenas);
  for (const std::string& note : my.runner->main_program().notes) my.say(note);
  const Lowered& lowered = my.runner->main_program().program->lowered();
  // Shown with the plan by whoever shows that.
  my.notes.insert(my.notes.end(), lowered.notes.begin(), lowered.notes.end());
  const Graph& graph = lowered.graph;
  for (const std::string& note :
       initialise_parameters(my.config.parameters, my.config.seed, graph, my.states)) {
    my.say(note);
  }
  for (NotFiniteState& state : not_finite_states(my.states, {})) {
    if (state.worst == Finiteness::infinite)
      my.infinite.insert(state.name);
    else
      my.nan_at_start.push_back(std::move(state));
  }
  my.position.optimizers = parameter_kinds(my.config, forward);
  if (my.config.data) my.position.functions = id_functions(*my.config.data);
  check_integer_fields(my.config, forward, *my.data.train);
  const auto say = [&](const std::string& note) { my.say(note); };
  check_finite_fields(my.config, forward, *my.data.train, say);
  if (my.data.eval) {
    check_integer_fields(my.config, forward, *my.data.eval);
    check_finite_fields(my.config, forward, *my.data.eval, say);
    my.evaluation =
        std::make_unique<Evaluation>(my.config, my.parts, my.data.eval, my.states, my.arenas);
  }
}

Training::~Training() = default;
const BoundProgram& Training::main_program() const { return impl_->runner->main_program(); }
std::vector<const BoundProgram*> Training::step_programs() const {
  return impl_->runner->step_programs();
}
StateStore& Training::states() { return impl_->states; }
std::int64_t Training::total_steps() const {
  return impl_->length.is_limited() ? impl_->length.steps : 0;
}
std::int64_t Training::steps_per_epoch() const { return impl_->length.steps_per_epoch; }

Graph Training::Impl::forward() const {
  return parts.forward(std::min(data.train->samples(), config.pass_size()), true);
}

std::uint64_t Training::Impl::copied_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t d = 1; d < parts.devices.size(); ++d) {
    parts.devices[d]->synchronize();
    const DeviceCounters counters = parts.devices[d]->counters();
    bytes += counters.bytes_to_device + counters.bytes_to_host;
  }
  return bytes;
}

TrainingResult Training::run(const std::string& resume_from,
                             const std::vector<std::pair<std::string, std::string>>& files) {
  Impl& my = *impl_;
  try {
    const std::shared_ptr<const void> lock = my.start(resume_from, files);
    return my.train();
  } catch (const Error& error) {
    const Error told = my.with_newest_checkpoint(error);
    my.log_error(told);
    throw told;
  }
}

StepResult Training::Impl::step(PassWatch* watch) {
  try {
    return runner->step(watch);
  } catch (const Error&) {  // a sample that cannot be read: what was trained until then stays
    if (position.step > first_step && runner->states_are_whole()) {
      save(false, true);
      say(fmt::format("step {} is saved: --resume goes on from there", position.step));
    }
    throw;
  }
}

TrainingResult Training::Impl::train() {
  Impl& my = *this;
  my.started = my.logged_at = Clock::now();
  Every log_every(my.config.log.every, my.length);
  Every eval_every(my.config.eval.every, my.length);
  Every save_every(my.config.checkpoint.every, my.length);
  my.first_step = my.position.step;
  my.other_bytes = my.copied_bytes();
  my.runner->start(my.position.step, my.position.data);
  my.refuse_nan_at_start();
  my.watch.start(my.states, my.infinite, my.place());
  const auto goes_on = [&] {
    const bool has_patience = my.evaluate();
    if (!has_patience) my.say("stopped early: " + my.not_improved());
    return has_patience;
  };
  // Interrupted in that evaluation.
  if (my.first_step > 0 && my.evaluated_step != my.first_step && eval_every.due(my.first_step))
    goes_on();
  while (my.position.step < static_cast<std::uint64_t>(my.length.steps) && !my.interrupted &&
         !my.patience_has_run_out()) {
    const std::uint64_t next = my.position.step + 1;
    const bool last = next == static_cast<std::uint64_t>(my.length.steps);
    const bool logged = log_every.due(next) || last || next == 1;
    PassWatch* const watch = logged ? my.hooks.watch : nullptr;
    const StepResult result = my.step(watch);
    my.position.step = result.step;
    my.step_start = std::exchange(my.position.data, result.end);
    my.position.samples += result.samples;
    my.last_loss = result.loss;
    if (logged || !std::isfinite(result.loss)) my.log_step(result);
    my.refuse_bad_loss(result);
    if (result.loss_scale)
      my.scale_watch.check(my.config, result.step, *result.loss_scale, result.skipped_steps);
    my.position.skipped_in_a_row = my.scale_watch.in_a_row();
    if (watch != nullptr) my.say(watch->report(result.step));
    my.look_at_states(result, logged);  // reads through the devices, whose record is reported first
    if (eval_every.due(my.position.step) && !goes_on()) break;
    if (my.is_interrupted()) break;
    if (my.config.max_seconds && seconds_since(my.started) > *my.config.max_seconds) {
      my.say("stopped: max_time has passed");
      break;
    }
    // The save of the last step comes after its evaluation, of which it records the best.
    if (save_every.due(my.position.step) && !last) my.save(false);
  }
  my.runner->stop();
  const bool evaluated = my.evaluated_step == my.position.step && !my.last_evaluation.empty();
  if (!my.interrupted && !evaluated) my.evaluate();
  my.save(!my.interrupted);
  const std::uint64_t steps = my.position.step - my.first_step;
  if (steps > 0 && static_cast<std::uint64_t>(my.scale_watch.in_a_row()) >= steps) {
    my.say(
        fmt::format("nothing was trained: {} of {} steps were skipped, their gradients "
                    "were not finite; the loss scale is {:g}",
                    steps, steps, my.states.read(loss_scale_state).number(0)));
  }
  return my.finish();
}

bool Training::Impl::is_interrupted() {
  interrupted = interrupted || (hooks.stop_requested && hooks.stop_requested());
  return interrupted;
}

void Training::run_steps(std::int64_t count, const std::function<void(double)>& after,
                         PassWatch* watch) {
  Impl& my = *impl_;
  my.runner->start(my.position.step, my.position.data);
  for (std::int64_t i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    const StepResult result = my.runner->step(watch);
    after(seconds_since(start));
    my.position.step = result.step;
    my.position.data = result.end;
  }
  my.runner->stop();
}

}  // namespace tandem
