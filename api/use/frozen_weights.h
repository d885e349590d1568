// Weights that checkpoints do not hold, and adapters on their way into the weights that they belong
// to.
#pragma once

#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/training/checkpoints/checkpoint.h"

namespace tandem::api {

/// Adds the parameters that are frozen beside adapters, as the model file, parameters.init and load
/// make them. Throws Error{usage} where they are not those of the checkpoint at `path`.
void add_frozen_weights(CheckpointContent& content, Model& model, const std::string& path);

/// Writes what init and load make of frozen parameters into `states` and compares them, and a
/// teacher's, with those of the checkpoint. `states` may lack some.
void restore_frozen_states(StateStore& states, const CheckpointContent& content,
                           const RunConfig& config, const Graph& graph, const LoadingParts& parts,
                           const std::string& path);

/// Each weight becomes itself with its adapters, which go.
void merge_adapters(CheckpointContent& content, const std::vector<AdaptedWeight>& adapted);

/// Takes the adapters out of the content.
std::vector<WeightAdapters> take_adapters(CheckpointContent& content,
                                          const std::vector<AdaptedWeight>& adapted);

}  // namespace tandem::api
