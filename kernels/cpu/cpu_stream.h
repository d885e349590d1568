// Lanes of the host as streams: everything runs on the calling thread, waits block it.
#pragma once

#include <memory>
#include <string>

#include "engine/device/device.h"

namespace tandem {

/// `monitor` may be null. Both keep it alive.
std::unique_ptr<Stream> make_cpu_stream(std::shared_ptr<LaneMonitor> monitor,
                                        const std::string& name);
std::unique_ptr<Event> make_cpu_event(std::shared_ptr<LaneMonitor> monitor);

}  // namespace tandem
