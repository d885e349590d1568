// Which devices have no kernel for which parts of a step, so that placement can fall back or say
// so.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/runtime/device.h"

namespace tandem::api {

/// What devices answered about every node of a training graph, or of a forward graph alone.
class KernelRefusals {
 public:
  /// The cpu, which comes first, is not asked: it has them all.
  KernelRefusals(const Graph& graph, const std::vector<Device*>& devices);

  bool empty() const { return refused_.empty(); }
  /// "Conv: cuda.conv: takes no float64" of an operator's path, forward or backward, or of
  /// "optimizer." and a parameter's name; nothing where the device has kernels.
  std::optional<std::string> find(int device, const std::string& path) const;

 private:
  void ask(const Graph& graph, NodeId node, const Device& device, int index);

  std::map<std::pair<int, std::string>, std::string> refused_;
};

}  // namespace tandem::api
