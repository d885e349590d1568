// A training step compiled under a policy without any memory: what every policy command looks at.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/plan/crossings.h"
#include "engine/plan/simulate.h"
#include "engine/runtime/compile.h"
#include "engine/training/pass_programs.h"
#include "placement/resolve.h"

namespace tandem {

/// A pass of the step: whole, or first, middle and last where gradients are accumulated.
struct PlannedPass {
  PassShape shape;
  std::int64_t times = 1;  // in a step
  CompiledProgram program;
  Simulation simulation;
};

struct PlannedStep {
  std::vector<PlannedPass> passes;  // the last one holds the update
  std::vector<Crossing> crossings;  // of all passes
  /// Per device: parts of the pass with the highest peak; the peak of all programs together.
  std::vector<MemoryUse> memory;
  std::vector<std::size_t> limits;  // bytes, per device: what the machine or the policy gives it
  std::vector<bool> limited;        // per device; the host swaps where the policy sets no limit
  std::vector<IdleView> views;
  std::vector<Diagnostic> misfits;  // devices that it does not fit into, with what to change
  double seconds = 0;
  double computing = 0;  // seconds of the busiest computing queue
  double exposed = 0;    // seconds that computing queues wait for copies

  bool fits() const { return misfits.empty(); }
  /// With its crossings and times; `imported` names the operators that make what crosses.
  void add(PlannedPass pass, const Graph& imported);
  /// Once all passes are there; `held`: per device, by all programs of the run.
  void set_memory(std::vector<MemoryUse> held, const ResolvedPolicy& resolved,
                  const std::vector<Device*>& devices);
};

}  // namespace tandem
