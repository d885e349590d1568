// Restores weights that checkpoints do not hold, and merges adapters into the weights that they
// belong to.
#pragma once

#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem::api {

/// Adds the frozen parameters of a model with adapters, with the values of the model file,
/// parameters.init and load. Throws Error{usage} where they differ from those of the checkpoint at
/// `path`.
void add_frozen_weights(CheckpointContent& content, ConfiguredModel& model,
                        const std::string& path);

/// Writes the values that init and load give to frozen parameters into `states`, and compares these
/// and a teacher's with the checkpoint's. `states` may lack some.
void restore_frozen_states(StateStore& states, const CheckpointContent& content,
                           const RunConfig& config, const Graph& graph, const LoadingParts& parts,
                           const std::string& path);

/// Merges its adapters into each weight and removes them.
void merge_adapters(CheckpointContent& content, const std::vector<AdaptedWeight>& adapted);

/// Removes the adapters from the content and returns them: initializers of an exported model, or
/// the values of its adapter inputs. Throws Error{usage} for kinds that nodes cannot compute.
std::vector<WeightAdapters> take_adapters(CheckpointContent& content,
                                          const std::vector<AdaptedWeight>& adapted,
                                          bool are_inputs);

}  // namespace tandem::api
