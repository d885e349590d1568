// Reads initial weights that the engine does not read itself: those of an ONNX model and of another
// run.
#pragma once

#include <memory>
#include <string>

#include "engine/train/loading/weights_match.h"
#include "importer/import_graph.h"

namespace tandem::api {

/// The initializers of a model; for a run directory, the checkpoint that `export` chooses, with the
/// weights that the run evaluates. Throws what opening them throws.
std::unique_ptr<WeightsFile> open_model_weights(const WeightsFormat& format,
                                                const std::string& path);

/// What parameters.load has to know about a model.
LoadingParts loading_parts(const ImportResult& model);

}  // namespace tandem::api
