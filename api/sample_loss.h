// A loss for models that bring none: enough to show what a training step looks like.
#pragma once

#include "api/engine.h"

namespace tandem::api {

/// The forward graph with one scalar output "loss": its own scalar float output, or the mean of its
/// first float output. Throws Error{usage} where there is no float output.
Graph with_sample_loss(const Engine& engine, const Graph& forward);

}  // namespace tandem::api
