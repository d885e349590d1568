#include "engine/train/averages/weights_in_use.h"

#include <map>

#include "engine/config/keys/config_names.h"
#include "engine/graph/error.h"
#include "engine/operators/update_kind.h"
#include "engine/train/averages/averaged_weights.h"

namespace tandem {

void initialise_averages(StateStore& states, const std::set<std::string>& known) {
  for (const std::string& name : states.names()) {
    if (known.contains(name) || states.kind(name) != StateKind::optimizer) continue;
    const std::string parameter = parameter_of_average(name);
    if (!parameter.empty() && states.has(parameter)) states.write(name, states.read(parameter));
  }
}

HostTensor without_lead(const HostTensor& parameter, const HostTensor& lead) {
  HostTensor used = parameter.clone();
  const std::span<float> values = used.as<float>();
  const std::span<const float> leads = lead.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= leads[i];
  return used;
}

void WeightsInUse::replace(const std::string& name, const HostTensor& value) {
  trained_.push_back({name, states_.read(name)});
  states_.write(name, value);
}

WeightsInUse::WeightsInUse(StateStore& states, Weights weights, const ReadWhole& read_whole)
    : states_(states) {
  for (const std::string& name : states.names()) {
    if (states.kind(name) != StateKind::parameter) continue;
    if (weights != Weights::trained) {
      const std::string average = averaged_name(name, weights);
      if (states.has(average)) replace(name, states.read(average));
      continue;
    }
    for (const std::string& state : lead_states()) {
      const std::string lead = name + "/" + state;
      if (!states.has(lead)) continue;
      const bool is_part = states.type(lead) != states.type(name);
      replace(name,
              without_lead(states.read(name), is_part ? read_whole(lead) : states.read(lead)));
    }
  }
}

WeightsInUse::~WeightsInUse() {
  for (const NamedTensor& tensor : trained_) states_.write(tensor.name, tensor.tensor);
}

void use_weights(CheckpointContent& content, Weights weights, const std::string& checkpoint) {
  std::map<std::string, const HostTensor*> averages;
  for (const NamedTensor& tensor : content.optimizer) averages[tensor.name] = &tensor.tensor;
  if (weights == Weights::trained) {
    for (NamedTensor& tensor : content.model) {
      for (const std::string& state : lead_states()) {
        const auto lead = averages.find(tensor.name + "/" + state);
        if (lead != averages.end()) tensor.tensor = without_lead(tensor.tensor, *lead->second);
      }
    }
    return;
  }
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
