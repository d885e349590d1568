#include "engine/train/updates/missed_steps.h"

#include <set>

#include "engine/train/updates/parameter_choice.h"

namespace tandem {

MissedStepCounts MissedSteps::change(const Graph& forward, const TrainingRequest& request,
                                     std::int64_t taken) {
  std::set<std::string> trained;
  for (const Chosen& chosen : choose_parameters(forward, request))
    trained.insert(chosen.parameter.source<CachedRows>());
  MissedStepCounts missed;
  for (const State& state : forward.states) {
    if (state.kind != StateKind::parameter || !state.trainable) continue;
    const std::string& name = state.source<CachedRows>();
    const auto frozen = frozen_since_.find(name);
    if (!trained.contains(name)) {
      if (frozen != frozen_since_.end()) continue;
      frozen_since_[name] = taken;
      continue;
    }
    if (frozen != frozen_since_.end()) {
      missed_[name] += taken - frozen->second;
      frozen_since_.erase(frozen);
    }
    const auto before = missed_.find(name);
    if (before != missed_.end() && before->second > 0) missed.insert(*before);
  }
  return missed;
}

MissedStepCounts MissedSteps::after(std::int64_t taken) const {
  MissedStepCounts all = missed_;
  for (const auto& [name, since] : frozen_since_) all[name] += taken - since;
  std::erase_if(all, [](const auto& entry) { return entry.second == 0; });
  return all;
}

void MissedSteps::restore(MissedStepCounts counts) {
  missed_ = std::move(counts);
  frozen_since_.clear();
}

}  // namespace tandem
