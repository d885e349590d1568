// When the instructions of steps were at work: as a trace has them, as a probe has them, and as the
// cost model expects them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "api/timing/mixed_runs.h"
#include "engine/device/lane_monitor.h"
#include "engine/plan/simulate.h"

namespace tandem::api {

struct LaunchTime {
  double start = 0, end = 0;  // seconds
  std::size_t bytes = 0;      // that a measured copy moved
};

/// In the order of the spans of TracedSteps; nothing where it is not known.
using LaunchTimes = std::vector<std::optional<LaunchTime>>;

/// All unknown where the trace does not hold just these steps.
LaunchTimes traced_times(const TracedSteps& traced, const std::vector<TraceSpan>& trace);

/// `nodes`: of all nodes in the order in which they ran, where one device does everything; all
/// unknown where they are more or fewer.
LaunchTimes probed_times(const TracedSteps& traced, const std::vector<LaunchTime>& nodes);

/// What the cost model expects of one step that begins at `start` and finds nobody at work. Of
/// feeding and reading slots it knows nothing.
LaunchTimes predicted_times(const TracedSteps& traced, const std::vector<DeviceProfile>& profiles,
                            double start);

}  // namespace tandem::api
