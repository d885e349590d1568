// What a run on several devices did in its last steps, beside what the cost model says: time and
// waits per queue, operator and copy, a Chrome trace; from what the devices' monitor kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/timing/mixed_runs.h"
#include "engine/plan/crossings.h"
#include "kernels/emulated/order_checker.h"

namespace tandem::api {

/// Milliseconds a step.
struct QueueTime {
  std::string name;
  double busy_ms = 0;
  double waiting_ms = 0;  // held up by other queues
};

/// Milliseconds a step.
struct CopyTime {
  double copying_ms = 0;
  double exposed_ms = 0;  // of that, computing queues stood still
  double waiting_ms = 0;  // computing queues stood still, also while the value was being made
  CopyTime& operator+=(const CopyTime& other);
};

/// A copy of a program, in all its runs in a step.
struct CopyProfile {
  Crossing crossing;
  CopyTime measured, predicted;
};

struct MixedProfile {
  /// All steps had these micro-batches: without it (the last step of an epoch was shorter) there
  /// are no times of operators, waits and single copies, and no arrows in the trace.
  bool whole = false;
  /// Per program and node of its lowered graph, sums over all steps.
  std::vector<std::vector<double>> node_seconds;
  std::vector<QueueTime> queues;     // those that compute or copy
  std::vector<QueueTime> predicted;  // the same queues
  std::vector<CopyProfile> copies;   // in the plans' order
  double bytes = 0;                  // copied, a step
  nlohmann::ordered_json events;     // Chrome trace, one track a queue
};

/// After `steps` steps under `monitor.start_trace`; all devices are synchronized. `profiles`: what
/// the cost model takes the devices for.
MixedProfile profile_mixed(const TracedSteps& traced, const OrderChecker& monitor,
                           const std::vector<DeviceProfile>& profiles);

/// Per program and node of its lowered graph, sums over all steps; zeros where the trace does not
/// hold just these steps.
std::vector<std::vector<double>> traced_node_seconds(const TracedSteps& traced,
                                                     const std::vector<TraceSpan>& trace);

/// Room for a trace of these steps.
std::size_t trace_capacity(const TracedSteps& traced);

/// The keys `queues`, `transfers`, `boundaries` and `copies` of `tandem bench --json`.
nlohmann::ordered_json mixed_json(const MixedProfile& profile, const std::vector<Device*>& devices);
std::string mixed_text(const MixedProfile& profile, const std::vector<Device*>& devices);

/// Chrome trace events: a named track for each queue, a slice for each span. Where `traced` is all
/// that the trace holds, arrows lead from the makers of copied values to the copies and on to the
/// readers.
nlohmann::ordered_json trace_events(const TracedSteps& traced, const OrderChecker& monitor,
                                    const std::vector<TraceSpan>& trace);

}  // namespace tandem::api
