// The host's stream for operations over all ranks: a thread of its own works through a ring,
// parallel to the calling thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/device/device.h"

namespace tandem {

/// The stream's thread runs inside of `on_thread`, which calls what it is given with the thread's
/// settings. Kernels run on that thread; enqueueing returns at once and allocates nothing. Events
/// are those of the cpu: its compute lane blocks on them. `monitor` may be null.
std::unique_ptr<Stream> make_collective_stream(
    std::shared_ptr<LaneMonitor> monitor, const std::string& name,
    std::function<void(const std::function<void()>&)> on_thread);

}  // namespace tandem
