// Rules that make room where a plan does not fit, each of them planned.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/graph/structures/function_ref.h"
#include "placement/report/planned_step.h"
#include "placement/resolve.h"

namespace tandem {

/// How much memory of a device a plan takes.
struct DevicePeak {
  std::string device;
  std::size_t bytes = 0;
  bool fits = true;
};

struct TriedPlan {
  std::vector<DevicePeak> peaks;
  double seconds = 0;  // a step, by the cost model
  bool fits() const;
};
TriedPlan tried_plan(const ResolvedPolicy& resolved, const PlannedStep& step);

struct Remedy {
  PolicyRule rule;        // { at = "**", state = "cpu" }
  std::size_t bytes = 0;  // what it frees on devices that the plan does not fit into
  bool suffices = false;  // whether the plan fits with this rule only
  double seconds = 0;     // a step's, with this rule
};

/// Plans with another rule after all others of the policy; throws Error{usage} where there is no
/// such plan.
using TryRule = FunctionRef<TriedPlan(const PolicyRule& rule)>;

/// `full` does not fit. Tries rules about the device, optimizer states, weights and activations of
/// everything and about the largest table of a device; two of them together where no single one
/// suffices. First come those that make it fit, by the time of a step, then those that free most.
/// Left out are those that take much longer than the fastest one that makes it fit, and those that
/// do not make it fit and take longer than that one.
std::vector<Remedy> find_remedies(const ResolvedPolicy& resolved, const TriedPlan& full,
                                  const TryRule& try_rule);

}  // namespace tandem
