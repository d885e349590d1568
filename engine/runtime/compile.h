// All of a program that can be decided without memory: lowered graph, prepared kernels, plan.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/plan.h"

namespace tandem {

struct ProgramOptions {
  LowerOptions lower;
  int input_slots = 3;   // ring of each fed input
  int output_slots = 4;  // ring of each output
  /// Sees the plan before any memory is taken; throws where it is not to be run. Empty: all are.
  std::function<void(const Plan&)> accept;
};

struct CompiledProgram {
  Lowered lowered;
  Plan plan;                                             // memory includes all slots of the rings
  std::vector<std::unique_ptr<PreparedKernel>> kernels;  // per node; null for views and transfers
};

/// Bytes of one slot of a ring; slots lie one after the other.
std::size_t slot_bytes(const Buffer& buffer);

/// Throws Error{usage} where a device has no kernel for a node.
CompiledProgram compile_program(const Graph& graph, const Placement& placement,
                                const OperatorSet& operators, const std::vector<Device*>& devices,
                                const ProgramOptions& options);

}  // namespace tandem
