// The accelerator in software: own memory that the host cannot touch, streams that are threads, a
// link with bandwidth and latency, and a watch on the order of everything.
#pragma once

#include <memory>
#include <string>

#include "engine/device/device.h"
#include "engine/device/device_family.h"
#include "kernels/emulated/order_checker.h"

namespace tandem {

struct EmulatedOptions {
  std::string name = "emulated:0";
  std::size_t memory_bytes = std::size_t{2} << 30;
  double bytes_per_second = assumed_link_bandwidth;  // speed of the link, each way
  double latency_seconds = 10e-6;                    // latency of each copy
  bool real_link = false;                            // copies take that long on the real clock, too
  bool capture = true;                               // segments as graphs
  bool check_order = true;  // for the monitor that it makes where none is given
  /// Shared with the other devices of the run; null: one of its own.
  std::shared_ptr<LaneMonitor> monitor;
};

/// Kernels are the cpu's, with a team of one thread on each stream. Memory, streams and events may
/// outlive the device. Throws Error{does_not_fit} where the system gives no address range.
std::unique_ptr<Device> make_emulated_device(const EmulatedOptions& options);

}  // namespace tandem
