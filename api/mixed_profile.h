// What a run on several devices did in its last steps, beside what the cost model says: time and
// waits per queue, operator and copy, a Chrome trace; from what the devices' monitor kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/crossings.h"
#include "engine/runtime/program.h"
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

struct CopyProfile {
  Crossing crossing;
  CopyTime measured, predicted;
};

struct MixedProfile {
  /// The steps were those of this program alone: without it there are no times of operators, waits
  /// and single copies, and no arrows in the trace.
  bool whole = false;
  std::vector<double> node_seconds;  // per node of the lowered graph, sums over all steps
  std::vector<QueueTime> queues;     // those that compute or copy
  std::vector<QueueTime> predicted;  // the same queues
  std::vector<CopyProfile> copies;   // in the plan's order
  double bytes = 0;                  // copied, a step
  nlohmann::ordered_json events;     // Chrome trace, one track a queue
};

/// After `steps` steps under `monitor.start_trace`; all devices are synchronized. `profiles`: what
/// the cost model takes the devices for.
MixedProfile profile_mixed(const Program& program, const OrderChecker& monitor, int steps,
                           const std::vector<DeviceProfile>& profiles);

/// Room for a trace of that many steps of the program.
std::size_t trace_capacity(const Program& program, int steps);

/// The keys `queues`, `transfers`, `boundaries` and `copies` of `tandem bench --json`.
nlohmann::ordered_json mixed_json(const MixedProfile& profile, const Program& program);
std::string mixed_text(const MixedProfile& profile, const Program& program);

/// The plan's instructions that leave a span in a trace, in the order of launching.
std::vector<Launch> spanned_launches(const Plan& plan);

/// Chrome trace events: a named track for each queue, a slice for each span. `steps`: so many steps
/// of the program are all that the trace holds, and arrows lead from the makers of copied values to
/// the copies and on to the readers; 0: slices only.
nlohmann::ordered_json trace_events(const Program& program, const OrderChecker& monitor,
                                    const std::vector<TraceSpan>& trace, int steps);

/// The name of a track.
nlohmann::ordered_json track_event(int track, const std::string& name);

}  // namespace tandem::api
