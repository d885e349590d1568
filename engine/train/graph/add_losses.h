// Appends the loss terms of the configuration to a forward graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/builder.h"
#include "engine/losses/loss_weights.h"

namespace tandem {

struct Loss {
  ValueId total;                                       // float32 scalar, the micro-batch's share
  std::vector<std::pair<std::string, ValueId>> terms;  // weighted, the micro-batch's share
  std::vector<FedDenominator> denominators;
  std::vector<std::string> notes;  // what was chosen where the configuration leaves a choice
};

/// Types of the data fields that losses may read, batch axis included.
using FieldTypes = std::map<std::string, TensorType>;

/// Adds inputs for labels and weights that the graph does not have yet. With no terms the graph's
/// own scalar output is the loss. Throws Error{usage}, all problems at once: unknown values with
/// the nearest name, logits that come from a Softmax or Sigmoid, shapes that do not fit.
/// `batch`: for a training step; an evaluation takes the samples of a program for their batch.
Loss add_loss(GraphBuilder& g, const LossConfig& config, const FieldTypes& fields,
              const StepSamples& samples, const WholeBatch& batch = {});

}  // namespace tandem
