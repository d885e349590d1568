// What trains in a step: its losses, the parameters, their gradients.
#include <algorithm>

#include "engine/gradient/gradient.h"
#include "engine/graph/parameter_names.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/graph/training_build.h"
#include "engine/train/programs/freeze_rules.h"
#include "engine/train/updates/layer_decay.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_without_gradients(const TrainingBuild& build) {
  const Chosen& first = build.parameters.front().chosen;
  Diagnostic d = at(build.config().model.where, first.parameter.path,
                    "nothing to train: the loss has no gradient for any parameter");
  d.fix =
      "`tandem inspect MODEL` says what gradients do not pass, such as the operators of a "
      "quantized "
      "file: train the float model";
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace

void name_losses(TrainingBuild& build) {
  build.result.denominators = build.loss.denominators;
  build.result.notes = build.loss.notes;
  for (const auto& [name, value] : build.loss.terms) build.result.terms.push_back(name);
  name_loss(build.g, build.loss, build.ranks);
}

void choose_what_trains(TrainingBuild& build) {
  const RunConfig& config = build.config();
  const Graph& graph = build.g.graph();
  std::vector<std::string>& notes = build.result.notes;
  build.tables.split = split_tables(config.parameters, graph);
  check_split_tables(build.tables.split, graph);
  build.tables.fixed = fixed_rows(config.parameters, graph);
  std::vector<Chosen> chosen = choose_parameters(graph, build.request);
  if (!config.parameters.freeze.empty()) {
    const ParameterNames names(graph);
    for (std::string& line : FreezeRules(config.parameters, names).without_effect(graph))
      notes.push_back(std::move(line));
  }
  if (config.optimizer.layer_decay < 1) decay_by_layers(graph, config.optimizer, chosen, notes);
  for (Chosen& each : chosen) build.parameters.push_back({std::move(each), {}});
}

void add_gradients(TrainingBuild& build) {
  GraphBuilder& g = build.g;
  std::vector<ValueId> wanted;
  for (const TrainedParameter& trained : build.parameters)
    wanted.push_back(trained.chosen.parameter.initial);
  g.set_scope({"loss.gradient", Phase::backward, {}});
  const PrecisionConfig& precision = build.config().precision;
  if (precision.scales_loss()) build.loss_scale = add_loss_scale(g, precision);
  const GradientSeed seed{build.loss.total,
                          build.loss_scale ? build.loss_scale : g.scalar(1.0, DType::float32)};
  const std::vector<ValueId> gradients = add_gradients(g, std::span(&seed, 1), wanted);
  if (std::none_of(gradients.begin(), gradients.end(), [](ValueId id) { return bool(id); }))
    refuse_without_gradients(build);
  for (std::size_t i = 0; i < gradients.size(); ++i) build.parameters[i].gradient = gradients[i];
}

}  // namespace tandem
