// Appends update nodes to a training graph: one per parameter, with its states and step scalars.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/training/config/run_config.h"

namespace tandem {

/// Values that all updates of a graph share.
struct UpdateScalars {
  ValueId step;   // int64 scalar, from 1
  ValueId scale;  // float32 scalar that multiplies every gradient
  ValueId skip;   // bool scalar: leave everything as it is
};

/// What one update reads and writes.
struct UpdateRequest {
  State parameter;  // a copy: adding states moves the graph's vectors
  ValueId gradient;
  ValueId lr;  // float32 scalar
  OptimizerOptions options;
};

/// Adds the states ("NAME/exp_avg") and the update node, and writes the new values back. One
/// function per kind, in engine/training/optimizers/KIND.cpp, with formula and source.
void add_sgd_update(GraphBuilder& g, const UpdateRequest& request, const UpdateScalars& scalars);
void add_adam_update(GraphBuilder& g, const UpdateRequest& request, const UpdateScalars& scalars);

void add_update(GraphBuilder& g, const UpdateRequest& request, const UpdateScalars& scalars);

/// A zero-filled state that belongs to a parameter and has its type.
ValueId add_moment(GraphBuilder& g, const State& parameter, const std::string& name);

}  // namespace tandem
