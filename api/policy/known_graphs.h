// Graphs that a case has built for earlier policies: a policy places their nodes, it changes none.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/train/graph/training_graph.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem::api {

/// What a training or evaluation graph is built from, next to what never changes in a case.
struct GraphSource {
  std::shared_ptr<const Graph> forward;
  MicroBatchShape shape;  // sizes and rounds of an evaluation
  bool trains = true;
  std::vector<bool> thawed = {};
  MissedStepCounts missed = {};
  Shardings shards = {};
  bool operator==(const GraphSource&) const = default;
};

class KnownGraphs {
 public:
  /// The graph from this source, built by `build` where it is not known.
  std::shared_ptr<const TrainingGraph> find(const GraphSource& source,
                                            const std::function<TrainingGraph()>& build);

 private:
  struct Known {
    GraphSource source;
    std::shared_ptr<const TrainingGraph> graph;
  };
  std::vector<Known> known_;  // the one that was used last comes last
};

}  // namespace tandem::api
