// Chrome trace events of what the memory of devices holds while steps run.
#pragma once

#include <nlohmann/json.hpp>

#include "api/timing/launch_times.h"

namespace tandem::api {

/// Counters "memory of DEVICE" (`ph` "C"): bytes by kind, as plan.json has them, where they change.
/// A buffer of the arena is in use from the first instruction that touches it to the end of the
/// last one. `others` (inputs, outputs, constants, and what the arena loses in gaps) is what the
/// most of that lacks of the planned peak, which is so the highest sum. Nothing of a micro-batch
/// whose times are not known.
nlohmann::ordered_json memory_counters(const TracedSteps& traced, const LaunchTimes& times);

}  // namespace tandem::api
