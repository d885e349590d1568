// Chrome trace events that show the memory held by devices while steps run.
#pragma once

#include <nlohmann/json.hpp>

#include "api/timing/launch_times.h"

namespace tandem::api {

/// Counters "memory of DEVICE" (`ph` "C"): bytes by kind, as in plan.json, where they change. A
/// buffer of the arena is in use from the start of the first instruction that accesses it to the
/// end of the last one. `others` (inputs, outputs, constants, and gaps in the arena) is the
/// difference between the planned peak and the maximum of the known bytes, so that the greatest sum
/// is the peak. Micro-batches whose times are unknown are left out.
nlohmann::ordered_json memory_counters(const TracedSteps& traced, const LaunchTimes& times);

}  // namespace tandem::api
