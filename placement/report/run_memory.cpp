// Sums of the plans of a run's programs, as the programs take their memory: engine/runtime.
#include "placement/report/run_memory.h"

#include <algorithm>

#include "engine/plan/plan_parts.h"

namespace tandem {

void RunMemory::add(const CompiledProgram& program) {
  const Lowered& lowered = program.lowered;
  const Plan& plan = program.plan;
  devices_.resize(std::max(devices_.size(), plan.memory.size()));
  std::vector<std::size_t> states(plan.memory.size(), 0);  // of this program
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
    to.own += use.peak > shared ? use.peak - shared : 0;
  }
}

std::vector<MemoryUse> RunMemory::uses() const {
  std::vector<MemoryUse> uses;
  for (const OnDevice& device : devices_) {
    uses.push_back(device.highest);
    uses.back().parameters = device.parameters;
    uses.back().state = device.state;
    uses.back().peak = device.states + device.arena + device.own;
  }
  return uses;
}

}  // namespace tandem
