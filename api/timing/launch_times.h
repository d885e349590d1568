// Start and end times of the instructions of steps: from a trace, from a probe, or from the cost
// model.
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
  std::size_t bytes = 0;      // bytes that a measured copy moved
};

/// In the order of the spans of TracedSteps; empty where a time is unknown.
using LaunchTimes = std::vector<std::optional<LaunchTime>>;

/// All empty where the trace does not contain exactly these steps.
LaunchTimes traced_times(const TracedSteps& traced, const std::vector<TraceSpan>& trace);

/// `nodes`: times of all nodes in the order in which they ran, where one device does everything;
/// all empty where their number differs.
LaunchTimes probed_times(const TracedSteps& traced, const std::vector<LaunchTime>& nodes);

/// The cost model's times for one step that begins at `start` when all queues are idle. Times of
/// feeding and reading slots stay empty.
LaunchTimes predicted_times(const TracedSteps& traced, const std::vector<DeviceProfile>& profiles,
                            double start);

}  // namespace tandem::api
