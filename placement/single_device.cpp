#include "placement/single_device.h"

namespace tandem {

Placement place_on_one_device(const Graph& graph, const std::vector<std::string>& devices,
                              int device, const std::string& reason) {
  Placement placement;
  placement.devices = devices;
  placement.nodes.assign(graph.nodes.size(), PlacedNode{device, reason});
  placement.states.assign(graph.states.size(), PlacedState{device, device, reason});
  return placement;
}

}  // namespace tandem
