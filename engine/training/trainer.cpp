#include "engine/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/training/algorithm/initial_states.h"
#include "engine/training/averages/weights_in_use.h"
#include "engine/training/checkpoints/frozen_states.h"
#include "engine/training/config/config_names.h"
#include "engine/training/data/buckets/bucketed_order.h"
#include "engine/training/data/id_functions.h"
#include "engine/training/divergence/check_finite.h"
#include "engine/training/divergence/check_integers.h"
#include "engine/training/divergence/finite_check.h"
#include "engine/training/divergence/label_checks.h"
#include "engine/training/initialise.h"
#include "engine/training/parameter_choice.h"
#include "engine/training/ranks/end_on_ranks.h"
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
  my.open_epochs();
  const std::int64_t samples = my.data.epoch_samples();
  my.length = run_length(my.config, samples);
  my.position.seed = my.config.seed;
  my.position.held_out = my.config.data ? my.config.data->eval_fraction : 0;
  my.position.batch_size = my.config.batch_size;
  my.position.batches = {
      {0, my.config.batch_size, samples, my.config.data && my.config.data->drop_last}};
  my.position.vocabularies = my.vocabulary_hashes();
  my.position.fingerprint = my.parts.fingerprint;
  const Graph forward = my.forward();
  my.data.train = zero_out_of_range(my.config, forward, my.data.train);
  my.data.eval = zero_out_of_range(my.config, forward, my.data.eval);
  my.runner = std::make_unique<StepRunner>(my.config, my.parts,
                                           StepData{my.data.train, my.epochs, my.data.buckets},
                                           my.length, my.states, my.arenas);
  my.histograms = my.histogram_parameters();
  for (const std::string& note : my.runner->main_program().notes) my.say(note);
  const Lowered& lowered = my.runner->main_program().program->lowered();
  // Callers that show the plan show these notes with it.
  my.notes.insert(my.notes.end(), lowered.notes.begin(), lowered.notes.end());
  const Graph& graph = lowered.graph;
  const std::shared_ptr<const TrainingAlgorithm> algorithm = my.algorithm();
  if (algorithm != nullptr) {
    for (const auto& [name, value] : initial_states(*algorithm, my.parts, my.config.seed))
      my.states.write(name, value);
  }
  for (const std::string& note : initialise_parameters(my.config.parameters, my.config.seed, graph,
                                                       my.states, my.parts.loading_parts())) {
    my.say(note);
  }
  my.position.frozen = frozen_hashes(my.states);
  initialise_averages(my.states);
  for (NotFiniteState& state : not_finite_states(my.states, {})) {
    if (state.worst == Finiteness::infinite)
      my.infinite.insert(state.name);
    else
      my.nan_at_start.push_back(std::move(state));
  }
  if (algorithm == nullptr) my.position.optimizers = parameter_kinds(my.config, forward);
  if (my.config.data) my.position.functions = id_functions(*my.config.data);
  check_integer_fields(my.config, forward, *my.data.train, my.parts.evaluate);
  const auto say = [&](const std::string& note) { my.say(note); };
  check_finite_fields(my.config, forward, *my.data.train, say);
  if (my.rank() == 0 && !my.data.buckets) {
    const std::string weightless = weightless_steps(my.config, label_means(forward), *my.data.train,
                                                    my.epochs->of(0)->samples, my.length.steps);
    if (!weightless.empty()) {
      my.say("warning    " + weightless);
      my.data.warnings.push_back(weightless);
    }
  }
  if (my.data.eval) {
    check_integer_fields(my.config, forward, *my.data.eval, my.parts.evaluate);
    check_finite_fields(my.config, forward, *my.data.eval, say);
    my.evaluation =
        std::make_unique<Evaluation>(my.config, my.parts, my.data.eval, my.states, my.arenas);
    if (const Weights weights = my.config.eval.weights; weights != Weights::trained)
      my.say("evaluations, and so the best checkpoint, are of the " +
             std::string(choice_name(weights)) + " weights");
  }
  my.memory = my.runner->check_later_phases(my.evaluation ? my.evaluation->programs()
                                                          : std::vector<const BoundProgram*>{});
}

Training::~Training() = default;
const BoundProgram& Training::main_program() const { return impl_->runner->main_program(); }
std::vector<const BoundProgram*> Training::step_programs() const {
  return impl_->runner->step_programs();
}
const std::vector<MemoryUse>& Training::memory() const { return impl_->memory; }
StateStore& Training::states() { return impl_->states; }
std::int64_t Training::total_steps() const {
  return impl_->length.is_limited() ? impl_->length.steps : 0;
}
std::int64_t Training::steps_per_epoch() const { return impl_->length.steps_per_epoch; }

std::int64_t Training::Impl::batch() const {
  return std::min(data.epoch_samples(), config.micro_batch_size());
}

void Training::Impl::open_epochs() {
  const ShuffleConfig shuffle = config.data ? config.data->shuffle : ShuffleConfig{};
  if (!data.order) data.order = shuffled_order(data.train->samples(), shuffle);
  if (data.buckets) {
    data.order = bucketed_order(data.order, data.buckets, config.batch_size,
                                shuffle.kind == ShuffleConfig::Kind::full);
  }
  epochs = std::make_shared<OpenEpochs>(data.order, config.seed);
}

Graph Training::Impl::forward() const { return parts.forward(batch(), true); }

std::shared_ptr<const TrainingAlgorithm> Training::Impl::algorithm() const {
  return parts.algorithm_for(batch(), true);
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
  } catch (const ErrorElsewhere&) {
    throw;
  } catch (const Error& error) {
    const Error told = my.with_newest_checkpoint(error);
    my.log_error(told);
    end_on_ranks(my.parts.ranks.get(), told);
  }
}

void Training::walk(std::int64_t count,
                    const std::function<bool(double loss, std::optional<double> lr)>& goes_on) {
  Impl& my = *impl_;
  StepRunner& runner = *my.runner;
  runner.start(my.position.step, my.position.data);
  bool is_over = false;
  for (std::int64_t i = 0; i < count && !is_over; ++i) {
    runner.launch();
    const StepResult result = runner.finish();
    my.position.step = result.step;
    my.position.data = result.end;
    is_over = !goes_on(result.loss, result.lr);
  }
  runner.stop();
}

void Training::run_steps(std::int64_t count, const std::function<void(double)>& after,
                         StepPace pace, MicroBatchWatch* watch) {
  Impl& my = *impl_;
  StepRunner& runner = *my.runner;
  runner.start(my.position.step, my.position.data);
  Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    runner.launch(watch);
    const bool ahead =
        pace == StepPace::ahead && watch == nullptr && i + 1 < count && runner.may_launch_ahead();
    while (runner.in_flight() > (ahead ? 1 : 0)) {
      const StepResult result = runner.finish();
      after(seconds_since(start));
      start = Clock::now();
      my.position.step = result.step;
      my.position.data = result.end;
    }
  }
  runner.stop();
}

}  // namespace tandem
