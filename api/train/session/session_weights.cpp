#include "api/train/session/session_weights.h"

#include <algorithm>

#include "engine/operators/update_kind.h"
#include "engine/train/averages/weights_in_use.h"

namespace tandem::api {
namespace {

bool has_lead(const OptimizerOptions& options) {
  const UpdateKind& kind = *find_update_kind(options.kind->choose(options.values).op);
  return std::any_of(kind.states.begin(), kind.states.end(),
                     [](const UpdateState& state) { return state.lead; });
}

}  // namespace

bool have_lead(const OptimizerConfig& optimizers) {
  return has_lead(optimizers.base) ||
         std::any_of(optimizers.groups.begin(), optimizers.groups.end(),
                     [](const OptimizerGroup& group) { return has_lead(group.options); });
}

std::optional<HostTensor> SessionStates::find(const std::string& name) const {
  if (held.has(name)) return held.read(name);
  const auto found = waiting.find(name);
  return found != waiting.end() ? std::optional(found->second) : std::nullopt;
}

void SessionStates::put(const std::string& name, const HostTensor& value) const {
  if (held.has(name))
    held.write(name, value);
  else
    waiting[name] = value;
}

SessionWeights::SessionWeights(const SessionStates& states, const Graph* forward)
    : states_(states) {
  if (forward == nullptr) return;
  for (const State& state : forward->states) {
    if (state.kind != StateKind::parameter) continue;
    for (const std::string& suffix : lead_states()) {
      const std::optional<HostTensor> lead = states.find(state.name + "/" + suffix);
      if (!lead) continue;
      const HostTensor trained = states.find(state.name).value_or(state.start).clone();
      trained_.push_back({state.name, trained});
      states.put(state.name, without_lead(trained, *lead));
    }
  }
}

SessionWeights::~SessionWeights() {
  for (const NamedTensor& tensor : trained_) states_.put(tensor.name, tensor.tensor);
}

void SessionWeights::forget_lead(const SessionStates& states, const std::string& parameter) {
  for (const std::string& suffix : lead_states()) {
    const std::string name = parameter + "/" + suffix;
    if (const std::optional<HostTensor> lead = states.find(name))
      states.put(name, HostTensor(lead->type()));
  }
}

}  // namespace tandem::api
