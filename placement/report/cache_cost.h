// Whether the caches of tables that a policy asks for are worth what they take, by the cost model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/plan/simulate.h"
#include "placement/resolve.h"

namespace tandem {

/// Of the caches that one rule asks for.
struct CacheCost {
  int rule = -1;
  int tables = 0;
  /// Seconds a step: of splitting ids, and of lookups, gradients and updates of cached rows.
  double costs = 0;
  /// Seconds a step: of copies that are not made, and of the host's work on cached rows.
  double saves = 0;
  bool sends_results = false;  // of some table one row an id crosses all the same

  bool pays() const { return costs <= saves; }
  std::string message() const;  // of one that does not
  std::string fix() const;
};

/// Adds what a program of a step tells, which runs `times` in it; `profiles`: one per device.
void add_cache_costs(const ResolvedPolicy& resolved, const Lowered& lowered, const Plan& plan,
                     const std::vector<DeviceProfile>& profiles, std::int64_t times,
                     std::vector<CacheCost>& costs);

/// Those that do not pay, at the keys of their rules.
std::vector<Diagnostic> cache_warnings(const Policy& policy, const std::vector<CacheCost>& costs);

}  // namespace tandem
