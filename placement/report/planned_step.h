// A training step compiled under a policy without any memory: what every policy command looks at.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/plan/crossings.h"
#include "engine/plan/simulate.h"
#include "engine/runtime/compile.h"
#include "engine/train/steps/micro_batch_programs.h"
#include "placement/report/cache_cost.h"
#include "placement/report/exchanges.h"
#include "placement/resolve.h"

namespace tandem {

/// A micro-batch of the step: whole, or first, middle and last where gradients are accumulated.
struct PlannedMicroBatch {
  MicroBatchShape shape;
  std::int64_t times = 1;  // in a step
  CompiledProgram program;
  Simulation simulation;
};

struct PlannedStep {
  std::vector<PlannedMicroBatch> micro_batches;  // the last one holds the update
  std::vector<Crossing> crossings;               // in all micro-batches
  int ranks = 1;                                 // how many there are; the plan is one rank's
  std::vector<PlannedExchange> exchanges;        // between ranks, in all micro-batches
  /// Per device: the uses in the micro-batch with the highest peak; `peak` is that of all programs
  /// together.
  std::vector<MemoryUse> memory;
  std::vector<std::size_t> limits;  // bytes, per device: what the machine or the policy gives it
  std::vector<bool> limited;        // per device; the host swaps where the policy sets no limit
  std::vector<IdleView> views;
  std::vector<CacheCost> caches;    // one for each rule that asks for caches
  std::vector<Diagnostic> misfits;  // devices that the step does not fit into, and what to change
  double seconds = 0;
  double computing = 0;  // seconds of the busiest computing queue
  double exposed = 0;    // seconds that computing queues wait for copies

  bool fits() const { return misfits.empty(); }
  /// Adds a micro-batch with its crossings and times; `imported` names the operators that make what
  /// crosses.
  void add(PlannedMicroBatch micro_batch, const Graph& imported);
  /// To be called once all micro-batches are there; `held`: per device, what all programs of the
  /// run hold.
  void set_memory(std::vector<MemoryUse> held, const ResolvedPolicy& resolved,
                  const std::vector<Device*>& devices);
};

}  // namespace tandem
