// What can be decided of a program without memory: lowered graph, prepared kernels, plan.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/graph/structures/out_of_line.h"
#include "engine/lower/lowered.h"
#include "engine/plan/plan.h"
#include "engine/plan/simulate.h"

namespace tandem {

struct ProgramOptions {
  COPIED_OUT_OF_LINE(ProgramOptions);

  LowerOptions lower;
  int input_slots = 3;        // ring of each fed input
  int output_slots = 4;       // ring of each output
  bool double_inputs = true;  // see PlanOptions
  /// Gets the plan before any memory is taken; throws where it must not be run. Empty: any may.
  std::function<void(const Plan&)> accept;
  /// How long kernels take on the virtual clock, per device; empty: a guess from their facts.
  std::vector<DeviceProfile> profiles;
};

struct CompiledProgram {
  Lowered lowered;
  Plan plan;                                             // memory includes all slots of the rings
  std::vector<std::unique_ptr<PreparedKernel>> kernels;  // per node; null for views and transfers
  /// Per node, for a last range that is shorter than the others; else null.
  std::vector<std::unique_ptr<PreparedKernel>> last_kernels;
};

/// Bytes of one slot of a ring; slots lie one after the other.
std::size_t slot_bytes(const Buffer& buffer);

/// Throws Error{usage} where a device has no kernel for a node.
CompiledProgram compile_program(const Graph& graph, const Placement& placement,
                                const OperatorSet& operators, const std::vector<Device*>& devices,
                                const ProgramOptions& options);

}  // namespace tandem
