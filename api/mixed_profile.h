// What a run on several devices did in its last steps: time per queue and operator, bytes moved, a
// Chrome trace; from the trace that the devices' monitor kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/runtime/program.h"
#include "kernels/emulated/order_checker.h"

namespace tandem::api {

struct QueueTime {
  std::string name;
  double busy_ms = 0;  // a step
};

struct MixedProfile {
  std::vector<double> node_seconds;  // per node of the lowered graph, sums over all steps; empty
                                     // where steps were not those of this program alone
  std::vector<QueueTime> queues;
  double bytes = 0;                                                 // copied, a step
  nlohmann::ordered_json events = nlohmann::ordered_json::array();  // Chrome trace, one row a lane
};

/// After `steps` steps under `monitor.start_trace`; all devices are synchronized.
MixedProfile profile_mixed(const Program& program, const OrderChecker& monitor, int steps);

/// Room for a trace of that many steps of the program.
std::size_t trace_capacity(const Program& program, int steps);

}  // namespace tandem::api
