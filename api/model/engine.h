// What every public function starts from: operators, the host's device, an evaluator of constants.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/lower/placement.h"
#include "engine/operators/operator.h"
#include "engine/passes/pass.h"
#include "kernels/emulated/order_checker.h"

namespace tandem::api {

/// Computes a node on constants with the reference kernels; throws where none supports the node.
/// Empty where the kernel reports an error, such as an index out of range: the step then reports
/// it.
Evaluator reference_evaluator();

struct Engine {
  OperatorSet operators = all_operators();
  /// Observes all queues where a run has accelerators.
  std::shared_ptr<OrderChecker> monitor = std::make_shared<OrderChecker>();
  std::unique_ptr<Device> cpu;
  Evaluator evaluate = reference_evaluator();

  /// threads 0: all usable cores.
  explicit Engine(int threads = 0);
  std::vector<Device*> devices() const { return {cpu.get()}; }
};

/// Throws Error{runtime} where the monitor saw accesses out of order, which is a bug of Tandem.
void check_order(const Engine& engine);

/// Everything on cpu, reason "default".
Placement place_everything(const Graph& graph);

std::uint64_t peak_resident_bytes();

}  // namespace tandem::api
