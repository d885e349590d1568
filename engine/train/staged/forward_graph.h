// Models in which data decides extents: the forward graph of a batch depends on the batch.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/graph/graph.h"

namespace tandem {

/// Tensors of a batch by name, axis 0 counting its samples.
using BatchTensors = std::map<std::string, HostTensor>;

struct StagedGraph {
  Graph graph;       // in inference form, after the forward passes
  std::string key;   // equal keys: equal graphs, for which one program serves
  BatchTensors fed;  // its inputs besides those of the data
};

class StagedForward {
 public:
  virtual ~StagedForward() = default;

  /// Runs the stages that determine the graph of the batch. Throws Error{data} with what kernels
  /// found, and Error{runtime} where that takes too many stages.
  virtual StagedGraph graph_for(std::int64_t samples, const BatchTensors& batch) = 0;
};

}  // namespace tandem
