// Builds what a training needs before its first step: programs, values of parameters, checks of the
// data.
#include <algorithm>

#include "engine/config/keys/config_names.h"
#include "engine/data/buckets/bucketed_order.h"
#include "engine/data/id_functions.h"
#include "engine/runtime/file_pages.h"
#include "engine/train/algorithm/initial_states.h"
#include "engine/train/averages/weights_in_use.h"
#include "engine/train/checkpoints/frozen_states.h"
#include "engine/train/divergence/check_finite.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/divergence/label_checks.h"
#include "engine/train/loading/initialise.h"
#include "engine/train/loop/training_loop.h"
#include "engine/train/updates/parameter_choice.h"

namespace tandem {

TrainingLoop::TrainingLoop(RunConfig config, RunParts parts, DataSets data,
                           std::shared_ptr<TrainingObserver> own_observer)
    : observer(own_observer ? std::move(own_observer) : std::make_shared<TrainingObserver>()),
      signals(place_of(parts), *observer) {
  run.config = std::move(config);
  run.parts = std::move(parts);
  run.data = std::move(data);
  open_epochs();
  run.length = run_length(run.config, run.data.epoch_samples());
  set_first_position();
  const Graph forward = run.forward();
  run.data.train = zero_out_of_range(run.config, forward, run.data.train);
  run.data.eval = zero_out_of_range(run.config, forward, run.data.eval);
  run.runner = std::make_unique<StepRunner>(run.config, run.parts,
                                            StepData{run.data.train, run.epochs, run.data.buckets},
                                            run.length, run.states, run.arenas);
  log.choose_histograms();
  initialise_states(forward);
  check_data(forward);
  drop_start_values(forward);
  memory = run.runner->check_later_phases(run.evaluation ? run.evaluation->programs()
                                                         : std::vector<const BoundProgram*>{});
}

void TrainingLoop::open_epochs() {
  DataSets& data = run.data;
  const ShuffleConfig shuffle = run.config.data ? run.config.data->shuffle : ShuffleConfig{};
  if (!data.order) data.order = shuffled_order(data.train->samples(), shuffle);
  if (data.buckets) {
    data.order = bucketed_order(data.order, data.buckets, run.config.batch_size,
                                shuffle.kind == ShuffleConfig::Kind::full);
  }
  run.epochs = std::make_shared<OpenEpochs>(data.order, run.config.seed);
}

void TrainingLoop::set_first_position() {
  const RunConfig& config = run.config;
  TrainingPosition& position = run.position;
  position.seed = config.seed;
  position.held_out = config.data ? config.data->eval_fraction : 0;
  position.batch_size = config.batch_size;
  position.batches = {
      {0, config.batch_size, run.data.epoch_samples(), config.data && config.data->drop_last}};
  for (const SavedVocabulary& v : run.data.vocabularies)
    position.vocabularies[v.file_name] = v.sha256;
  position.fingerprint = run.parts.fingerprint;
  if (config.data) position.functions = id_functions(*config.data);
}

void TrainingLoop::initialise_states(const Graph& forward) {
  for (const std::string& note : run.runner->main_program().notes) log.say(note);
  const Lowered& lowered = run.runner->main_program().program->lowered();
  // Callers that show the plan show these notes with it.
  for (const std::string& note : lowered.notes) log.note(note);
  const RunConfig& config = run.config;
  const std::shared_ptr<const TrainingAlgorithm> algorithm =
      run.parts.model->algorithm(run.micro_batch());
  if (algorithm != nullptr) {
    for (const auto& [name, value] : initial_states(*algorithm, run.parts, config.seed))
      run.states.write(name, value);
  }
  for (const std::string& note :
       initialise_parameters(config.parameters, config.seed, lowered.graph, run.states,
                             run.parts.model->loading_parts())) {
    log.say(note);
  }
  run.position.frozen = frozen_hashes(run.states);
  initialise_averages(run.states);
  guard.record_start();
  if (algorithm == nullptr) run.position.optimizers = parameter_kinds(config, forward);
}

// The states have their values now; the model file's pages go back to the system.
void TrainingLoop::drop_start_values(const Graph& forward) {
  for (const State& state : forward.states)
    drop_large_value(state.start.data(), state.start.bytes());
}

void TrainingLoop::check_data(const Graph& forward) {
  const RunConfig& config = run.config;
  DataSets& data = run.data;
  const auto say = [&](const std::string& note) { log.say(note); };
  check_integer_fields(config, forward, *data.train, run.parts.evaluate);
  check_finite_fields(config, forward, *data.train, say);
  if (run.rank() == 0 && !data.buckets) {
    const std::string weightless = weightless_steps(config, label_means(forward), *data.train,
                                                    run.epochs->of(0)->samples, run.length.steps);
    if (!weightless.empty()) {
      say("warning    " + weightless);
      data.warnings.push_back(weightless);
    }
  }
  if (!data.eval) return;
  check_integer_fields(config, forward, *data.eval, run.parts.evaluate);
  check_finite_fields(config, forward, *data.eval, say);
  run.evaluation =
      std::make_unique<Evaluation>(config, run.parts, data.eval, run.states, run.arenas);
  if (const Weights weights = config.eval.weights; weights != Weights::trained)
    say("evaluations, and so the best checkpoint, are of the " + std::string(choice_name(weights)) +
        " weights");
}

}  // namespace tandem
