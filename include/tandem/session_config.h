// What a Session is made of, as structs.
#pragma once

#include "tandem/policy.h"
#include "tandem/train_config.h"

namespace tandem::api::inline v1 {

/// The part of a TrainConfig that a Session honours. Durations are in steps.
struct SessionConfig {
  ModelSettings model;                              ///< `file` is relative to the current folder
  std::int64_t batch_size = 32;                     ///< most samples of a step, at least 1
  Maybe<std::variant<std::string, Policy>> policy;  ///< a policy.toml, or one that is no file
  Maybe<RunDevice> device;
  Maybe<std::int64_t> steps;  ///< length of the schedule, where its shape depends on one
  Maybe<std::int64_t> seed, threads;
  ParametersSettings parameters;
  LossSettings loss;
  OptimizerSettings optimizer;
  PrecisionSettings precision;
  std::vector<EvalMetricSettings> metrics;  ///< what `evaluate` measures besides the loss
  /// On request the constructor, `step`, `predict` and `evaluate` throw Error{runtime} "interrupted" before they change
  /// anything.
  StopToken stop;
};

}  // namespace tandem::api::inline v1
