// Which devices have no kernel for which parts of a step, so that placement can fall back or say
// so.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/graph.h"

namespace tandem {

/// Why devices have no kernel for nodes of a training graph, or of a forward graph only, as
/// PlacementFacts::refusals: "Conv: cuda.conv: takes no float64". The cpu, which comes first, is
/// not asked: it has kernels for all.
std::map<std::pair<int, std::string>, std::string> kernel_refusals(
    const Graph& graph, const std::vector<Device*>& devices);

}  // namespace tandem
