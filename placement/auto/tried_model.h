// A model that automatic placement tries policies on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "placement/report/planned_step.h"
#include "placement/run_policy.h"

namespace tandem {

/// Which programs a plan counts the memory of: those of the first full step; or all of the run
/// (engine/training/programs/run_programs.h).
enum class PlannedPrograms : std::uint8_t { step, run };

class TriedModel {
 public:
  virtual ~TriedModel() = default;
  /// As it was imported for a micro-batch.
  virtual const Graph& graph() = 0;
  /// Another policy for the same model. Plans of the one before must be gone.
  virtual void replace_policy(const std::string& text) = 0;
  /// Calls `look` while another rule stands behind all others. What was planned before stays valid.
  virtual void with_rule(const std::string& rule, const std::function<void()>& look) = 0;
  virtual const RunPolicy& policy() const = 0;
  /// Throws Error{usage} with everything that is wrong in the policy.
  virtual const ResolvedPolicy& resolved() = 0;
  virtual PlannedStep plan(PlannedPrograms programs) = 0;
};

}  // namespace tandem
