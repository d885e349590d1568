// The profile of the last steps of a run on several devices, next to the cost model's prediction:
// time and waits per queue, operator and copy, and a Chrome trace, computed from the records of the
// devices' monitor.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/timing/mixed_runs.h"
#include "engine/plan/crossings.h"
#include "kernels/emulated/order_checker.h"

namespace tandem::api {

/// Milliseconds per step.
struct QueueTime {
  std::string name;
  double busy_ms = 0;
  double waiting_ms = 0;  // time in which other queues held it up
};

/// Milliseconds per step.
struct CopyTime {
  double copying_ms = 0;
  double exposed_ms = 0;  // the part of it during which computing queues stood still
  /// Time that computing queues stood still, also while the value was being computed.
  double waiting_ms = 0;
  CopyTime& operator+=(const CopyTime& other);
};

/// A copy of a program, summed over all its runs in a step.
struct CopyProfile {
  Crossing crossing;
  CopyTime measured, predicted;
};

struct MixedProfile {
  /// All steps had these micro-batches. Where false (the last step of an epoch was shorter), there
  /// are no times of operators, waits and single copies, and no arrows in the trace.
  bool whole = false;
  /// By program and node of its lowered graph: seconds summed over all steps.
  std::vector<std::vector<double>> node_seconds;
  std::vector<QueueTime> queues;     // the queues that compute or copy
  std::vector<QueueTime> predicted;  // the same queues
  std::vector<CopyProfile> copies;   // in the plans' order
  double bytes = 0;                  // bytes copied per step
  nlohmann::ordered_json events;     // Chrome trace, one track per queue
};

/// Call after `steps` steps under `monitor.start_trace`, with all devices synchronized. `profiles`:
/// the cost model's profiles of the devices.
MixedProfile profile_mixed(const TracedSteps& traced, const OrderChecker& monitor,
                           const std::vector<DeviceProfile>& profiles);

/// By program and node of its lowered graph: seconds summed over all steps; zeros where the trace
/// does not contain exactly these steps.
std::vector<std::vector<double>> traced_node_seconds(const TracedSteps& traced,
                                                     const std::vector<TraceSpan>& trace);

/// The number of spans in a trace of these steps, for reserving it.
std::size_t trace_capacity(const TracedSteps& traced);

/// The keys `queues`, `transfers`, `boundaries` and `copies` of `tandem bench --json`.
nlohmann::ordered_json mixed_json(const MixedProfile& profile, const std::vector<Device*>& devices);
std::string mixed_text(const MixedProfile& profile, const std::vector<Device*>& devices);

/// Chrome trace events: a named track for each queue, a slice for each span. Where the trace
/// contains exactly the steps of `traced`, arrows lead from the producers of copied values to the
/// copies and on to the readers.
nlohmann::ordered_json trace_events(const TracedSteps& traced, const OrderChecker& monitor,
                                    const std::vector<TraceSpan>& trace);

}  // namespace tandem::api
