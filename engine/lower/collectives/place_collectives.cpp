// Moves exchanges between ranks to a device that has a communicator: their own where it has one,
// else the host, else the first that has one. Without any (a plan that is not run) all stay.
#include <algorithm>

#include "engine/lower/placed_graph.h"

namespace tandem {

PlacedGraph place_collectives(PlacedGraph placed, const LowerContext& context) {
  const std::vector<Device*>& devices = context.devices;
  const auto is_joined = [](const Device* device) { return device->communicator() != nullptr; };
  const auto first = std::find_if(devices.begin(), devices.end(), is_joined);
  if (first == devices.end()) return placed;
  for (std::size_t n = 0; n < placed.graph.nodes.size(); ++n) {
    if (placed.graph.nodes[n].op->role != Role::collective) continue;
    PlacedNode& place = placed.nodes[n];
    if (is_joined(devices[place.device])) continue;
    place.device = static_cast<int>(first - devices.begin());
    place.reason = "no communicator where it would be";
  }
  return placed;
}

}  // namespace tandem
