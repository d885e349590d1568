#include "engine/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "engine/training/check_integers.h"
#include "engine/training/checkpoint.h"
#include "engine/training/evaluation.h"
#include "engine/training/finite_check.h"
#include "engine/training/initialise.h"
#include "engine/training/loss_scale.h"
#include "engine/training/metrics.h"
#include "engine/training/run_directory.h"
#include "engine/training/schedule.h"
#include "engine/training/step_runner.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t unlimited =
    std::numeric_limits<std::int64_t>::max();  // max_time alone ends the run

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string base_name(const RunConfig& config) {
  return config.name.empty() ? std::filesystem::path(config.file).stem().string() : config.name;
}

std::string runs_folder(const RunConfig& config) {
  return (std::filesystem::path(config.file).parent_path() / "runs").string();
}

/// Without the sign that a nan may have.
std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:g}", value);
}

/// Says whether something that happens every `duration` is due after a step.
class Every {
 public:
  Every(const std::optional<Duration>& duration, std::int64_t steps_per_epoch)
      : duration_(duration), last_(Clock::now()) {
    if (duration_) steps_ = duration_->steps(steps_per_epoch);
  }
  bool due(std::uint64_t step) {
    if (!duration_) return false;
    if (duration_->unit != Duration::Unit::seconds) return step % steps_ == 0;
    if (seconds_since(last_) < duration_->value) return false;
    last_ = Clock::now();
    return true;
  }

 private:
  std::optional<Duration> duration_;
  std::int64_t steps_ = 0;
  Clock::time_point last_;
};

}  // namespace

struct Training::Impl {
  RunConfig config;
  RunParts parts;
  DataSets data;
  TrainingHooks hooks;
  StateStore states;
  std::shared_ptr<Arenas> arenas = make_arenas();
  std::int64_t steps_per_epoch = 1, total_steps = 1;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<Evaluation> evaluation;
  std::unique_ptr<RunDirectory> directory;
  TrainingPosition position;
  std::vector<std::pair<std::string, double>> last_evaluation;
  LossScaleWatch scale_watch;
  std::vector<NamedTensor> carried;  // states of the checkpoint that this precision does not have
  std::vector<std::string> notes;    // for the log, before there is a directory
  double last_loss = std::nan("");   // until a step was taken, or metrics.jsonl told it
  std::set<std::string> infinite;    // states that hold infinities before training
  std::uint64_t saved_step = 0, logged_step = 0;
  std::optional<std::uint64_t> evaluated_step;  // of the last evaluation in metrics.jsonl
  Clock::time_point started = Clock::now(), logged_at = started;
  std::uint64_t logged_samples = 0;
  std::uint64_t first_step = 0;   // of this process: what it had before
  std::uint64_t other_bytes = 0;  // that devices copied before the first step and to evaluate

  /// Bytes that all devices have copied so far; waits for them.
  std::uint64_t copied_bytes() const;
  void say(const std::string& text) {
    if (directory)
      directory->log_text(text);
    else
      notes.push_back(text);
    if (hooks.on_message) hooks.on_message(text);
  }
  /// Into the log of a run that it ends.
  void log_error(const Error& error);
  /// Of values that are not finite: what float16 adds to `fix`.
  std::string with_float16_advice(const char* fix) const;
  void report(bool is_evaluation, const std::vector<std::pair<std::string, double>>& values,
              double rate) {
    if (!hooks.on_progress) return;
    TrainingProgress progress;
    progress.step = position.step;
    progress.epoch = static_cast<double>(position.step) / steps_per_epoch;
    if (total_steps != unlimited) {
      progress.steps = total_steps;
      progress.epochs = static_cast<double>(total_steps) / steps_per_epoch;
    }
    progress.evaluation = is_evaluation;
    progress.values = values;
    progress.samples_per_second = rate;
    progress.seconds = seconds_since(started);
    hooks.on_progress(progress);
  }
  void log_step(const StepResult& result);
  bool evaluate();
  CheckpointSources sources() const;
  std::map<std::string, std::string> vocabulary_hashes() const;
  void refuse_bad_metrics() const;
  void save(bool finished);
  void resume(const std::string& run_dir);
  /// Returns the lock on the run directory.
  std::shared_ptr<const void> start(const std::string& resume_from,
                                    const std::vector<std::pair<std::string, std::string>>& files);
  TrainingResult train();
  TrainingResult finish(bool interrupted);
};

Training::Training(RunConfig config, RunParts parts, DataSets data, TrainingHooks hooks)
    : impl_(new Impl) {
  Impl& my = *impl_;
  my.config = std::move(config);
  my.parts = std::move(parts);
  my.data = std::move(data);
  my.hooks = std::move(hooks);
  const std::int64_t samples = my.data.train->samples();
  const bool drop_last = my.config.data && my.config.data->drop_last;
  my.steps_per_epoch = tandem::steps_per_epoch(samples, my.config.batch_size, drop_last);
  if (my.steps_per_epoch < 1) {
    Diagnostic d;
    d.file = my.config.file;
    d.message = "there are fewer samples than one batch, and drop_last leaves them out";
    d.expected = "at least " + std::to_string(my.config.batch_size) + " samples";
    d.got = std::to_string(samples);
    d.fix = "lower batch_size, or set data.drop_last = false";
    throw Error(ErrorKind::usage, std::move(d));
  }
  // The first of steps and epochs ends the run.
  my.total_steps = my.config.steps.value_or(unlimited);
  if (my.config.epochs || (!my.config.steps && !my.config.max_seconds)) {
    const double steps = my.config.epochs.value_or(1) * static_cast<double>(my.steps_per_epoch);
    constexpr double most_steps = 1e15;
    if (steps > most_steps) {
      Diagnostic d;
      d.file = my.config.file;
      d.path = "epochs";
      d.message = "the run would never end";
      d.expected = "at most 1e15 steps";
      d.got = std::to_string(my.steps_per_epoch) + " steps an epoch";
      d.fix = "lower epochs, or leave it away and set steps or max_time";
      throw Error(ErrorKind::usage, std::move(d));
    }
    const std::int64_t whole = std::max<std::int64_t>(1, std::llround(steps));
    my.total_steps = std::min(my.total_steps, whole);
  }
  my.position.seed = my.config.seed;
  my.position.held_out = my.config.data ? my.config.data->eval_fraction : 0;
  my.position.batch_size = my.config.batch_size;
  my.position.vocabularies = my.vocabulary_hashes();
  const Graph& whole = my.parts.forward(std::min(samples, my.config.pass_size()), true);
  my.data.train = zero_out_of_range(my.config, whole, my.data.train);
  my.data.eval = zero_out_of_range(my.config, whole, my.data.eval);
  const Schedule schedule(my.config.optimizer.schedule, my.config.optimizer.base.lr, my.total_steps,
                          my.steps_per_epoch);
  my.runner = std::make_unique<StepRunner>(my.config, my.parts, my.data.train, schedule, my.states,
                                           my.arenas, my.steps_per_epoch);
  for (const std::string& note : my.runner->main_program().notes) my.say(note);
  const Lowered& lowered = my.runner->main_program().program->lowered();
  // Shown with the plan by whoever shows that.
  my.notes.insert(my.notes.end(), lowered.notes.begin(), lowered.notes.end());
  const Graph& graph = lowered.graph;
  for (const std::string& note :
       initialise_parameters(my.config.parameters, my.config.seed, graph, my.states)) {
    my.say(note);
  }
  my.infinite = infinite_states(my.states);
  const Graph& forward = my.parts.forward(std::min(samples, my.config.pass_size()), true);
  check_integer_fields(my.config, forward, *my.data.train);
  if (my.data.eval) {
    check_integer_fields(my.config, forward, *my.data.eval);
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
  return impl_->total_steps == unlimited ? 0 : impl_->total_steps;
}
std::int64_t Training::steps_per_epoch() const { return impl_->steps_per_epoch; }

void Training::Impl::log_step(const StepResult& result) {
  const double interval = seconds_since(logged_at);
  const double rate =
      interval > 0 ? static_cast<double>(position.samples - logged_samples) / interval : 0;
  logged_at = Clock::now();
  logged_samples = position.samples;
  logged_step = position.step;
  std::vector<std::pair<std::string, double>> values{{"loss", result.loss}};
  if (result.terms.size() > 1)
    values.insert(values.end(), result.terms.begin(), result.terms.end());
  if (result.gradient_norm) values.emplace_back("gradient_norm", *result.gradient_norm);
  if (result.loss_scale) {
    values.emplace_back("loss_scale", *result.loss_scale);
    values.emplace_back("skipped_steps", static_cast<double>(result.skipped_steps));
  }
  values.emplace_back("lr", result.lr);
  report(false, values, rate);
  values.emplace_back("wall", seconds_since(started));
  values.emplace_back("samples_per_second", rate);
  directory->log_metrics(position.step, "", values);
}

void Training::Impl::log_error(const Error& error) {
  if (!directory) return;
  try {
    directory->log_text(error.what());
  } catch (const Error&) {  // a full disk: the error itself counts
  }
}

std::string Training::Impl::with_float16_advice(const char* fix) const {
  const Graph& graph = runner->main_program().program->lowered().graph;
  const bool computes_in_float16 =
      std::any_of(graph.values.begin(), graph.values.end(),
                  [](const Value& value) { return value.type.dtype == DType::float16; });
  if (!computes_in_float16) return fix;
  return std::string(
             "float16 ends at 65504: name operators in precision.keep_float32, or set "
             "precision.compute = \"bfloat16\"; where float32 fails as well, ") +
         fix;
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

/// False where patience has run out.
bool Training::Impl::evaluate() {
  if (!evaluation) return true;
  const Clock::time_point start = Clock::now();
  const std::uint64_t copied = copied_bytes();
  last_evaluation = evaluation->run();
  other_bytes += copied_bytes() - copied;
  report(true, last_evaluation, static_cast<double>(evaluation->samples()) / seconds_since(start));
  std::vector<std::pair<std::string, double>> values = last_evaluation;
  values.emplace_back("wall", seconds_since(started));
  if (evaluated_step == position.step) return true;  // a resumed run that was logged at its end
  evaluated_step = position.step;
  directory->log_metrics(position.step, "eval", values);
  refuse_bad_metrics();
  if (config.eval.best.empty()) return true;
  for (const auto& [name, value] : last_evaluation) {
    if (name != config.eval.best) continue;
    const bool better = !position.best ||
                        (larger_is_better(name) ? value > *position.best : value < *position.best);
    if (better) {
      position.best = value;
      position.best_step = position.step;
      position.evaluations_without_better = 0;
      save(false);
      directory->write_file("checkpoints/best", checkpoint_name(position.step) + "\n");
    } else {
      ++position.evaluations_without_better;
    }
  }
  return config.eval.patience == 0 || position.evaluations_without_better < config.eval.patience;
}

std::map<std::string, std::string> Training::Impl::vocabulary_hashes() const {
  std::map<std::string, std::string> hashes;
  for (const SavedVocabulary& v : data.vocabularies) hashes[v.file_name] = v.sha256;
  return hashes;
}

CheckpointSources Training::Impl::sources() const {
  CheckpointSources sources = sources_of(states);
  sources.position = position;
  if (parts.aliases) sources.aliases = parts.aliases();
  leave_out_fixed_loss_scale(sources, config.precision);
  for (TensorSource& source : sources_of(carried)) sources.optimizer.push_back(std::move(source));
  return sources;
}

/// Throws where the last evaluation is not finite: names the states that are the cause, if any.
void Training::Impl::refuse_bad_metrics() const {
  std::vector<Diagnostic> problems;
  for (const auto& [name, value] : last_evaluation) {
    if (std::isfinite(value)) continue;
    Diagnostic d;
    d.path = "eval";
    d.message =
        "the evaluation's " + name + " is not finite at step " + std::to_string(position.step);
    d.expected = "a number";
    d.got = number_text(value);
    d.fix = with_float16_advice(
        "look for nan or infinite values in the held-out data, or lower optimizer.lr; earlier "
        "checkpoints are kept");
    problems.push_back(std::move(d));
  }
  if (problems.empty()) return;
  refuse_not_finite(states, position.step, infinite);
  throw Error(ErrorKind::diverged, std::move(problems));
}

void Training::Impl::save(bool finished) {
  if (saved_step == position.step && position.step > 0) return;
  position.finished = finished;
  refuse_not_finite(states, position.step, infinite);
  CheckpointOptions options;
  options.shard_bytes = static_cast<std::uint64_t>(config.checkpoint.shard_mib) << 20;
  write_checkpoint(directory->checkpoints(), sources(), options);
  prune_checkpoints(directory->checkpoints(), config.checkpoint.keep, position.best_step);
  saved_step = position.step;
}

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

/// Others would draw another part of the samples for evaluation, of which some were trained.
void refuse_other_split(const TrainingPosition& before, const TrainingPosition& now,
                        const RunConfig& config) {
  refuse_other("seed", "seed", before.seed, now.seed, config);
  if (before.held_out)
    refuse_other("data.eval.fraction", "held-out part", *before.held_out, *now.held_out, config);
}

}  // namespace

void Training::Impl::resume(const std::string& run_dir) {
  std::vector<std::string> messages;
  std::string path;
  const std::optional<CheckpointContent> content =
      newest_checkpoint(run_dir + "/checkpoints", messages, &path);
  if (content) {  // before anything in the directory changes
    refuse_other_split(content->position, position, config);
    // The states of its last step: some appear when frozen parameters thaw.
    runner->prepare(std::max<std::uint64_t>(content->position.step, 1) - 1);
    restore_states(states, *content);
    carried = restore_loss_scale(states, config.precision, *content, path);
    if (states.has(skipped_steps_state)) {
      scale_watch.start(states.read(skipped_steps_state).as<std::int64_t>()[0],
                        content->position.skipped_in_a_row);
    }
    if (config.parameters.freeze.empty()) refuse_unknown_states(states, *content);
  }
  directory = std::make_unique<RunDirectory>(
      RunDirectory::resume(run_dir, content ? content->position.step : 0));
  evaluated_step = directory->evaluated_step();
  for (const std::string& message : messages) say(message);
  set_broken_checkpoints_aside(directory->checkpoints(), content ? content->position.step : 0);
  if (!content) {
    say("no whole checkpoint in " + run_dir + ": starting from the beginning");
    return;
  }
  if (content->position.batch_size != config.batch_size) {
    say("batch_size changed from " + std::to_string(content->position.batch_size) + " to " +
        std::to_string(config.batch_size));
  }
  const std::optional<double> held_out = position.held_out;
  position = content->position;
  position.held_out = held_out;
  position.batch_size = config.batch_size;
  position.vocabularies = vocabulary_hashes();
  if (position.best)
    directory->write_file("checkpoints/best", checkpoint_name(position.best_step) + "\n");
  saved_step = logged_step = position.step;
  logged_samples = position.samples;
  last_loss = directory->resumed_loss().value_or(last_loss);
  say("resumed at step " + std::to_string(position.step));
  if (position.step >= static_cast<std::uint64_t>(total_steps)) {
    say("nothing left to do: the run is at step " + std::to_string(position.step) + " of " +
        std::to_string(total_steps));
  }
}

std::shared_ptr<const void> Training::Impl::start(
    const std::string& resume_from, const std::vector<std::pair<std::string, std::string>>& files) {
  std::shared_ptr<const void> lock;
  if (resume_from.empty()) {
    directory = std::make_unique<RunDirectory>(
        RunDirectory::create(config.run_dir, runs_folder(config), base_name(config)));
    lock = RunDirectory::lock(directory->path());
  } else {
    lock = RunDirectory::lock(resume_from);
    resume(resume_from);
  }
  for (const auto& [name, content] : files) directory->write_file(name, content);
  for (const std::string& note : notes) directory->log_text(note);
  notes.clear();
  return lock;
}

TrainingResult Training::Impl::finish(bool interrupted) {
  TrainingResult result;
  result.run_dir = directory->path();
  result.steps = position.step;
  result.loss = last_loss;
  result.evaluation = last_evaluation;
  result.interrupted = interrupted;
  if (!interrupted) {
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
    for (const auto& [name, value] : last_evaluation) summary["eval"][name] = value;
    if (position.best)
      summary["best"] = {
          {"metric", config.eval.best}, {"value", *position.best}, {"step", position.best_step}};
    directory->write_file("summary.json", summary.dump(2) + "\n");
  }
  return result;
}

TrainingResult Training::run(const std::string& resume_from,
                             const std::vector<std::pair<std::string, std::string>>& files) {
  Impl& my = *impl_;
  try {
    const std::shared_ptr<const void> lock = my.start(resume_from, files);
    return my.train();
  } catch (const Error& error) {
    my.log_error(error);
    throw;
  }
}

TrainingResult Training::Impl::train() {
  Impl& my = *this;
  my.started = my.logged_at = Clock::now();
  Every log_every(my.config.log.every, my.steps_per_epoch);
  Every eval_every(my.config.eval.every, my.steps_per_epoch);
  Every save_every(my.config.checkpoint.every, my.steps_per_epoch);
  bool interrupted = false;
  my.first_step = my.position.step;
  my.other_bytes = my.copied_bytes();
  my.runner->start(my.position.step, my.position.data);
  while (my.position.step < static_cast<std::uint64_t>(my.total_steps)) {
    const std::uint64_t next = my.position.step + 1;
    const bool last = next == static_cast<std::uint64_t>(my.total_steps);
    const bool logged = log_every.due(next) || last || next == 1;
    PassWatch* const watch = logged ? my.hooks.watch : nullptr;
    const StepResult result = my.runner->step(watch);
    my.position.step = result.step;
    my.position.data = result.end;
    my.position.samples += result.samples;
    my.last_loss = result.loss;
    if (!std::isfinite(result.loss)) {
      my.log_step(result);
      Diagnostic d;
      d.message = "the loss is not finite at step " + std::to_string(my.position.step);
      d.expected = "a number";
      d.got = number_text(result.loss);
      d.fix = my.with_float16_advice(
          "lower optimizer.lr, or set optimizer.clip_norm; earlier checkpoints are kept");
      throw Error(ErrorKind::diverged, std::move(d));
    }
    if (logged) my.log_step(result);
    if (result.loss_scale)
      my.scale_watch.check(my.config, result.step, *result.loss_scale, result.skipped_steps);
    my.position.skipped_in_a_row = my.scale_watch.in_a_row();
    if (watch != nullptr) my.say(watch->report(result.step));
    if (eval_every.due(my.position.step) && !my.evaluate()) {
      my.say("stopped early: " + my.config.eval.best + " has not improved for " +
             std::to_string(my.config.eval.patience) + " evaluations");
      break;
    }
    if (save_every.due(my.position.step)) my.save(false);
    if (my.hooks.stop_requested && my.hooks.stop_requested()) {
      interrupted = true;
      break;
    }
    if (my.config.max_seconds && seconds_since(my.started) > *my.config.max_seconds) {
      my.say("stopped: max_time has passed");
      break;
    }
  }
  my.runner->stop();
  const bool evaluated = my.evaluated_step == my.position.step && !my.last_evaluation.empty();
  if (!interrupted && !evaluated) my.evaluate();
  my.save(!interrupted);
  const std::uint64_t steps = my.position.step - my.first_step;
  if (steps > 0 && static_cast<std::uint64_t>(my.scale_watch.in_a_row()) >= steps) {
    my.say(
        fmt::format("nothing was trained: {} of {} steps were skipped, their gradients "
                    "were not finite; the loss scale is {:g}",
                    steps, steps, my.states.read(loss_scale_state).number(0)));
  }
  return my.finish(interrupted);
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
