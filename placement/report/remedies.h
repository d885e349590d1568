// Rules that make room where a plan does not fit, each of them planned.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "placement/report/planned_step.h"
#include "placement/resolve.h"

namespace tandem {

/// What a plan takes of a device.
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
  std::string rule;       // { at = "**", state = "cpu" }
  std::size_t bytes = 0;  // that it frees, of devices that the plan does not fit into
  bool suffices = false;  // it alone
  double seconds = 0;     // a step with it
};

/// Plans under the policy with another rule behind all others; throws Error{usage} where there is
/// no such plan.
using TryRule = std::function<TriedPlan(const std::string& rule)>;

/// `full` does not fit. Rules about the device, optimizer state, weights and activations of
/// everything and about the largest table of a device; two of them together where none suffices
/// alone. First those that make it fit, by the time of a step, then those that free most. One that
/// takes much longer than another that makes it fit is left out, and one that does not make it fit
/// where it takes longer.
std::vector<Remedy> find_remedies(const ResolvedPolicy& resolved, const TriedPlan& full,
                                  const TryRule& try_rule);

/// A line each, below a heading; "" for none.
std::string remedies_text(const std::vector<Remedy>& remedies);

}  // namespace tandem
