// The host as a device: its memory, its compute lane, its kernel list.
#pragma once

#include <memory>
#include <optional>

#include "engine/device/device.h"

namespace tandem {

/// Cores that this process may use: the scheduler's affinity and the control group's quota, at
/// least 1.
int usable_cores();

/// OMP_NUM_THREADS of the environment, its first number; nothing where it is not set or says none.
std::optional<int> asked_threads();

/// Threads that compute where no configuration says how many: the number of cores, at least one,
/// and not more than OMP_NUM_THREADS.
int default_threads(int cores = usable_cores());

/// The device "cpu" with a team of `threads` threads; 0 takes the default, and the team has at most
/// as many threads as there are usable cores. Streams report what they do to the monitor.
std::unique_ptr<Device> make_cpu_device(int threads = 0,
                                        std::shared_ptr<LaneMonitor> monitor = nullptr);

}  // namespace tandem
