// Runs the instruction lists of a plan as discrete events: the one cost model, for any device
// profile.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/operators/collectives/collective_cost.h"
#include "engine/plan/plan.h"

namespace tandem {

/// What a device can do at best; seconds of a kernel = max(flops / flops, bytes / bandwidth) +
/// overhead, where it was not measured.
struct DeviceProfile {
  double flops = 100e9;          // floating point operations a second
  double bandwidth = 20e9;       // bytes a second from its own memory
  double overhead = 1e-6;        // seconds an instruction
  double link_bandwidth = 10e9;  // bytes a second to and from the host
  double link_latency = 10e-6;   // seconds a copy
  /// The network between ranks, by default 10 Gb/s.
  double network_bandwidth = 1.25e9;  // bytes a second, in each direction
  double network_latency = 20e-6;     // seconds a message
  CollectiveLibrary collectives = CollectiveLibrary::messages;
  /// Seconds of kernels by `request_text`.
  std::map<std::string, double> measured = {};
};

/// What a kernel is asked for, independent of device and path: operator, attributes, body, types.
std::string request_text(const Graph& graph, const Node& node);

/// How the ranks carry out an operation over all of them.
ChosenCollective chosen_collective(const Graph& graph, const Node& node,
                                   const DeviceProfile& profile);

/// Seconds of a kernel or a copy, as measured or by the roofline; 0 for waits and records.
double seconds_of(const Instruction& instruction, const Lowered& lowered,
                  const DeviceProfile& profile);

/// A guess from only the facts of a device.
DeviceProfile assumed_profile(const DeviceFacts& facts);

struct SimulatedQueue {
  double busy = 0;     // seconds at work in a step
  double waiting = 0;  // seconds in waits
};

/// A kernel or a copy in the last simulated step.
struct SimulatedSpan {
  int queue = 0, index = 0;    // which instruction
  double start = 0, end = 0;   // seconds
  double exposed = 0;          // seconds that computing queues waited for it
  const char* algorithm = "";  // how ranks carry out an operation over all of them
};

/// A wait in the last simulated step that held its queue up.
struct SimulatedWait {
  int queue = 0, index = 0;  // which instruction
  double seconds = 0;
};

struct Simulation {
  double seconds = 0;  // from step to step, once the loop is in its steady state
  std::vector<SimulatedQueue> queues;
  std::vector<SimulatedSpan> spans;  // in the order of `queues`, each queue in its own order
  std::vector<SimulatedWait> waits;
};

/// `profiles`: one per device of the lowered graph.
Simulation simulate(const Plan& plan, const Lowered& lowered,
                    const std::vector<DeviceProfile>& profiles);

/// The spans of that many steps in a row, step after step, each step in the order of
/// `Simulation::spans`. The first step begins at 0 and finds all queues idle, as does every step
/// that is waited for before the next is launched.
std::vector<SimulatedSpan> simulate_from_rest(const Plan& plan, const Lowered& lowered,
                                              const std::vector<DeviceProfile>& profiles,
                                              int steps);

}  // namespace tandem
