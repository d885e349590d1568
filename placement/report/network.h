// The network between ranks, as `policy plan` and `policy auto` take it for all devices.
#pragma once

#include <string>

#include "engine/plan/simulate.h"

namespace tandem {

struct Network {
  double bytes_per_second = DeviceProfile{}.network_bandwidth;  // in each direction
  double latency = DeviceProfile{}.network_latency;             // seconds a message
};

/// Reads "100Gb/s,5us", or only one of the two. Throws Error{usage}.
Network parse_network(const std::string& text);

}  // namespace tandem
