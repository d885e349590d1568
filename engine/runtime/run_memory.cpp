// Sums of the plans of a run's programs, as the programs take their memory: program.cpp.
#include "engine/runtime/run_memory.h"

#include <algorithm>

#include "engine/plan/planning_steps.h"

namespace tandem {

void add_layouts(const Lowered& lowered, StateLayouts& layouts) {
  for (std::size_t s = 0; s < lowered.states.size(); ++s) {
    const std::string& name = lowered.graph.states[s].name;
    const bool is_known = std::any_of(layouts.begin(), layouts.end(),
                                      [&](const auto& known) { return known.first == name; });
    if (!is_known) layouts.emplace_back(name, lowered.states[s].layout);
  }
}

void RunMemory::add(const Lowered& lowered, const Plan& plan, std::size_t OnDevice::*own) {
  devices_.resize(std::max(devices_.size(), plan.memory.size()));
  std::vector<std::size_t> states(plan.memory.size(), 0);  // this program's
  for (const State& state : lowered.graph.states) {
    const int number = plan.buffer_of[state.initial.index];
    if (number < 0) continue;
    const Buffer& buffer = plan.buffers[number];
    states[buffer.device] += aligned(buffer.bytes);
    if (states_.insert(state.name).second) devices_[buffer.device].states += aligned(buffer.bytes);
  }
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = plan.memory[d];
    OnDevice& to = devices_[d];
    to.parameters = std::max(to.parameters, use.parameters);
    to.state = std::max(to.state, use.state);
    if (use.peak >= to.highest.peak) to.highest = use;
    to.arena = std::max(to.arena, use.arena);
    const std::size_t shared = use.arena + states[d];
    to.*own += use.peak > shared ? use.peak - shared : 0;
    to.peak = std::max(to.peak, to.states + to.arena + to.own + to.of_phase);
  }
}

void RunMemory::begin_phase() {
  for (OnDevice& device : devices_) device.of_phase = 0;
}

std::vector<MemoryUse> RunMemory::uses() const {
  std::vector<MemoryUse> uses;
  for (const OnDevice& device : devices_) {
    uses.push_back(device.highest);
    uses.back().parameters = device.parameters;
    uses.back().state = device.state;
    uses.back().peak = device.peak;
  }
  return uses;
}

Plan RunMemory::as_plan() const {
  Plan plan;
  plan.memory = uses();
  return plan;
}

}  // namespace tandem
