// The host as a device: its memory, its compute lane, its kernel list.
#pragma once

#include <memory>

#include "engine/device/device.h"

namespace tandem {

/// Cores that this process may use: the scheduler's affinity and the control group's quota, at
/// least 1.
int usable_cores();

/// The device "cpu" with a team of `threads` threads; 0 takes all usable cores, more are cut to
/// them. A monitor is told what its streams do.
std::unique_ptr<Device> make_cpu_device(int threads = 0,
                                        std::shared_ptr<LaneMonitor> monitor = nullptr);

}  // namespace tandem
