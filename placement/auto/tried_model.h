// A model that automatic placement tries policies on.
#pragma once

#include <cstdint>

#include "engine/graph/structures/function_ref.h"
#include "placement/report/planned_step.h"
#include "placement/run_policy.h"

namespace tandem {

/// The programs whose memory a plan counts: those of the first full step, or all of the run
/// (engine/train/programs/run_programs.h).
enum class PlannedPrograms : std::uint8_t { step, run };

class TriedModel {
 public:
  virtual ~TriedModel() = default;
  /// The graph as it was imported for a micro-batch.
  virtual const Graph& graph() = 0;
  /// Sets another policy for the same model. No plan of the policy before may be in use.
  virtual void replace_policy(RunPolicy policy) = 0;
  /// Calls `look` with `rule` added after all others. What was planned before stays valid.
  virtual void with_rule(const PolicyRule& rule, FunctionRef<void()> look) = 0;
  virtual const RunPolicy& policy() const = 0;
  /// Throws Error{usage} with everything that is wrong in the policy.
  virtual const ResolvedPolicy& resolved() = 0;
  virtual PlannedStep plan(PlannedPrograms programs) = 0;
};

}  // namespace tandem
