// The simplest strategy: every node and every state on one device.
#pragma once

#include "engine/graph/graph.h"
#include "engine/lower/placement.h"

namespace tandem {

/// `device` is an index into `devices`; the reason of each node and state names it.
Placement place_on_one_device(const Graph& graph, const std::vector<std::string>& devices,
                              int device, const std::string& reason);

}  // namespace tandem
