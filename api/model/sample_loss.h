// A loss for models that have none: enough to show what a training step looks like.
#pragma once

#include "api/model/engine.h"
#include "engine/train/graph/training_graph.h"

namespace tandem::api {

/// The forward graph with one scalar output "loss": its own scalar float output, or the mean of its
/// first float output. Throws Error{usage} where there is no float output.
Graph with_sample_loss(const Engine& engine, const Graph& forward);

/// Fields without data: inputs in the model's types, labels in the types that the loss needs.
FieldTypes guessed_fields(const RunConfig& config, const Graph& forward);

/// The micro-batch with the update, on guessed fields; with the loss above where neither the
/// configuration nor the model has one. `algorithm`: the model's own, or null. Throws what
/// `build_training_graph` throws.
Graph sample_training_graph(const Engine& engine, const RunConfig& config, const Graph& forward,
                            std::shared_ptr<const TrainingAlgorithm> algorithm);

}  // namespace tandem::api
