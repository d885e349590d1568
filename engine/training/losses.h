// Appends the loss terms of the configuration to a forward graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/training/config/run_config.h"

namespace tandem {

/// How many samples one pass and the whole optimizer step have; a mean is over the step.
struct StepSamples {
  std::int64_t pass = 0;
  std::int64_t step = 0;
  bool whole() const { return pass == step; }
};

/// A mean whose denominator depends on the labels of the whole step and is fed: the sum of
/// label_weight_sum over the passes of the step.
struct FedDenominator {
  std::string term;
  std::string input;  // float32 scalar of the training graph
};

struct Loss {
  ValueId total;                                       // float32 scalar, the pass's share
  std::vector<std::pair<std::string, ValueId>> terms;  // weighted, the pass's share
  std::vector<FedDenominator> denominators;
};

/// Types of the data fields that losses may read, batch axis included.
using FieldTypes = std::map<std::string, TensorType>;

/// Adds inputs for labels that the graph does not have yet. With no terms the graph's own scalar
/// output is the loss. Throws Error{usage}, all problems at once: unknown values with the nearest
/// name, logits behind a Softmax or Sigmoid, shapes that do not fit.
Loss add_loss(GraphBuilder& g, const LossConfig& config, const FieldTypes& fields,
              const StepSamples& samples);

/// What a fed denominator is: the sum of the weights of these labels.
double label_weight_sum(const LossTerm& term, const HostTensor& labels);

}  // namespace tandem
