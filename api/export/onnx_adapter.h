// Adapters of a run as values for the inputs of a model that was exported with --lora inputs.
#pragma once

#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/formats/named_tensor.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem::api {

struct OnnxAdapter {
  std::vector<NamedTensor> tensors;  // with the names of the inputs
  std::vector<std::string> warnings = {};
};

/// `content`: what a checkpoint holds of the model. A warning names what else the training changed,
/// which only the exported model has. Throws Error{usage} for a run without adapters.
OnnxAdapter onnx_adapter(CheckpointContent content, ConfiguredModel& model);

}  // namespace tandem::api
