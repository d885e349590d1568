// Splits the graph of a whole training step in two: forward, and from the gradients on.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/operators/operator.h"
#include "engine/train/algorithm/algorithm.h"

namespace tandem::importer {

/// In ids of the graph before it is split, in which derivatives are inputs.
struct SplitRequest {
  std::vector<AlgorithmGradient> gradients;
  std::vector<AlgorithmUpdate> updates;
  std::vector<AlgorithmWrite> writes;
  std::vector<NamedValue> outputs;  // outputs of the model
  std::vector<NamedValue>
      more_outputs;  // outputs of the algorithm; the forward graph has those that it may have
  std::unordered_set<std::string_view> own_states;  // initializers of the algorithm
};

struct Split {
  Graph forward;
  TrainingAlgorithm algorithm;  // without an initialization
};

Split split_training(Graph all, const OperatorSet& operators, SplitRequest request);

}  // namespace tandem::importer
