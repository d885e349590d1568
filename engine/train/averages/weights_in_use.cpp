#include "engine/train/averages/weights_in_use.h"

#include <map>

#include "engine/config/keys/config_names.h"
#include "engine/graph/error.h"
#include "engine/train/averages/averaged_weights.h"

namespace tandem {

void initialise_averages(StateStore& states, const std::set<std::string>& known) {
  for (const std::string& name : states.names()) {
    if (known.contains(name) || states.kind(name) != StateKind::optimizer) continue;
    const std::string parameter = parameter_of_average(name);
    if (!parameter.empty() && states.has(parameter)) states.write(name, states.read(parameter));
  }
}

WeightsInUse::WeightsInUse(StateStore& states, Weights weights) : states_(states) {
  if (weights == Weights::trained) return;
  for (const std::string& name : states.names()) {
    if (states.kind(name) != StateKind::parameter) continue;
    const std::string average = averaged_name(name, weights);
    if (!states.has(average)) continue;
    const HostTensor trained = states.read(name);
    trained_.push_back({name, trained});
    states.write(name, states.read(average));
  }
}

WeightsInUse::~WeightsInUse() {
  for (const NamedTensor& tensor : trained_) states_.write(tensor.name, tensor.tensor);
}

void use_weights(CheckpointContent& content, Weights weights, const std::string& checkpoint) {
  if (weights == Weights::trained) return;
  std::map<std::string, const HostTensor*> averages;
  for (const NamedTensor& tensor : content.optimizer) averages[tensor.name] = &tensor.tensor;
  bool any = false;
  for (NamedTensor& tensor : content.model) {
    const auto found = averages.find(averaged_name(tensor.name, weights));
    if (found == averages.end()) continue;
    tensor.tensor = *found->second;
    any = true;
  }
  if (any) return;
  const std::string name(choice_name(weights));
  throw Error(ErrorKind::usage, Diagnostic{.message = "the checkpoint has no " + name + " weights",
                                           .file = checkpoint,
                                           .expected = "one of a run with optimizer." + name,
                                           .fix = "take the trained weights: --weights trained"});
}

}  // namespace tandem
