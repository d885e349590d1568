// Averages of weights in the place of the trained ones: for an evaluation, and out of checkpoints.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/runtime/program.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem {

/// Gives averages the values of their parameters; `known`: states that have values already.
void initialise_averages(StateStore& states, const std::set<std::string>& known = {});

/// While it lives, parameters hold their averages; then what they held before.
class WeightsInUse {
 public:
  WeightsInUse(StateStore& states, Weights weights);
  ~WeightsInUse();
  WeightsInUse(const WeightsInUse&) = delete;
  WeightsInUse& operator=(const WeightsInUse&) = delete;

 private:
  StateStore& states_;
  std::vector<NamedTensor> trained_;
};

/// Puts averages of a checkpoint in the place of its parameters. Throws Error{usage} naming
/// `checkpoint` where it has none.
void use_weights(CheckpointContent& content, Weights weights, const std::string& checkpoint);

}  // namespace tandem
