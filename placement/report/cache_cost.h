// Whether the table caches that a policy asks for save more time than they cost, by the cost model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/plan/simulate.h"
#include "placement/resolve.h"

namespace tandem {

/// Costs and savings of the caches that one rule asks for.
struct CacheCost {
  int rule = -1;
  int tables = 0;
  /// Seconds a step for splitting ids, and for lookups, gradients and updates of cached rows.
  double costs = 0;
  /// Seconds a step for copies that are not made, and for the host's work on cached rows.
  double saves = 0;
  bool sends_results = false;  // some table still sends one row for each id

  bool pays() const { return costs <= saves; }
  std::string message() const;  // for a cache that does not pay
  std::string fix() const;
};

/// Adds the costs in one of a step's programs, which runs `times` times in the step; `profiles`:
/// one per device.
void add_cache_costs(const ResolvedPolicy& resolved, const Lowered& lowered, const Plan& plan,
                     const std::vector<DeviceProfile>& profiles, std::int64_t times,
                     std::vector<CacheCost>& costs);

/// Warnings for caches that do not pay, at the keys of their rules.
std::vector<Diagnostic> cache_warnings(const Policy& policy, const std::vector<CacheCost>& costs);

}  // namespace tandem
