// A forward graph that is trained for some steps, in one process or by ranks that are threads.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/graph/state_shard.h"
#include "engine/ranks/rank_group.h"
#include "engine/runtime/program.h"
#include "engine/train/graph/training_graph.h"

namespace tandem::testing {

/// The graph's output "y" of [samples, outputs] is compared with a target "t" of sines.
struct GraphTraining {
  std::vector<std::string> keys;
  std::int64_t batch = 12, micro_batch = 12, outputs = 1;
  int device = 0, steps = 4;
  std::function<Graph(const OperatorSet& operators, std::int64_t samples)> forward;
  /// Fills an input besides the target with samples from `first` on.
  std::function<void(const std::string& name, std::int64_t first, std::int64_t samples, void* slot)>
      feed;
  Shardings shards;  // with several ranks
};

/// A parameter "a.weight" with the path "a:weight" that starts with sines.
State sine_parameter(const std::string& name, const Shape& shape);

/// The result on one rank.
struct TrainedGraph {
  std::vector<float> losses;
  std::map<std::string, HostTensor> states;  // without the sums within a step
  std::map<std::string, StateShard> shards;
  float norm = 0, stop = -1;  // rank 1 wants to stop
  std::optional<Program::StepError> error;
};

RunConfig config_of(const GraphTraining& of);
/// `config` is that of the training.
TrainingGraph training_graph(const OperatorSet& operators, const RunConfig& config,
                             const GraphTraining& of, MicroBatchKind kind, const RankPlace& place);

TrainedGraph train_graph(const GraphTraining& of, const RankPlace& place = {},
                         RankGroup* group = nullptr);
/// By rank.
std::vector<TrainedGraph> train_graph_on(int ranks, const GraphTraining& of);

}  // namespace tandem::testing
