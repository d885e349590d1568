// Adapters as PEFT reads them: adapter_model.safetensors with adapter_config.json.
#pragma once

#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/formats/named_tensor.h"
#include "engine/training/checkpoints/checkpoint.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The two files as they are to be written.
struct PeftAdapter {
  std::string config;  // JSON
  std::vector<NamedTensor> tensors;
  std::vector<std::string> warnings = {};
};

/// `content`: what a checkpoint at `path` has of the model: adapters, and what trained beside them,
/// whose modules become modules_to_save, whole: with what did not train. A tensor's module is that
/// of its name ("fc1" of "fc1.weight"), else of the operator that reads it, then without
/// `names.strip` and behind `names.add`. Weights get PyTorch's orientation, adapters PEFT's, [r,
/// in] and [out, r]. Throws Error{usage} where a tensor has no module or several, where PEFT would
/// not adapt what is adapted here, where no name has the prefix, and where rules give weights
/// different dropouts, for which PEFT has one number.
PeftAdapter peft_adapter(CheckpointContent content, Model& model, const std::string& path,
                         const ExportNames& names);

}  // namespace tandem::api
