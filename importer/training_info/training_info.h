// Models that say themselves how they are trained: ONNX's training_info.
#pragma once

#include <memory>

#include "engine/train/algorithm/algorithm.h"
#include "importer/import_graph.h"

namespace tandem {

bool has_training_info(const OnnxFile& file);

struct TrainingImport {
  ImportResult model;  // its graph ends in the model's outputs and in what `algorithm` reads
  std::shared_ptr<const TrainingAlgorithm> algorithm;  // null: problems, or no training_info
};

/// For a model with training_info: the graph of a training step, split where its gradients begin.
/// Each BatchNormalization normalises as its node says, and only bindings change states. Other
/// models are imported as by import_graph. Throws as that does; and Error{usage} for bindings and
/// Gradient nodes that do not fit.
TrainingImport import_training(const OnnxFile& file, const OperatorSet& operators,
                               const ImportOptions& options);

}  // namespace tandem
