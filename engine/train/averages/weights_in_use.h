// The weights that are used in the place of those that train: for an evaluation, and out of
// checkpoints.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/runtime/program.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem {

/// Gives averages the values of their parameters; `known`: states that have values already.
void initialise_averages(StateStore& states, const std::set<std::string>& known = {});

/// A state of which this rank has a part, as a whole; all ranks call it at the same points.
using ReadWhole = std::function<HostTensor(const std::string& name)>;

/// What is used of a parameter whose optimizer has trained it ahead by this lead.
HostTensor without_lead(const HostTensor& parameter, const HostTensor& lead);

/// While it lives, parameters hold their averages, or, for Weights::trained, what an optimizer with
/// a lead (OptimizerState::lead) has trained; then what they held before.
class WeightsInUse {
 public:
  WeightsInUse(StateStore& states, Weights weights, const ReadWhole& read_whole = {});
  ~WeightsInUse();
  WeightsInUse(const WeightsInUse&) = delete;
  WeightsInUse& operator=(const WeightsInUse&) = delete;

 private:
  void replace(const std::string& name, const HostTensor& value);

  StateStore& states_;
  std::vector<NamedTensor> trained_;
};

/// Puts averages of a checkpoint, or what its optimizers with a lead have trained, in the place of
/// its parameters. Throws Error{usage} naming
/// `checkpoint` where it has none.
void use_weights(CheckpointContent& content, Weights weights, const std::string& checkpoint);

}  // namespace tandem
