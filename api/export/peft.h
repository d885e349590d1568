// Exports adapters in the format of PEFT: adapter_model.safetensors with adapter_config.json.
#pragma once

#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/formats/named_tensor.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The contents of the two files.
struct PeftAdapter {
  std::string config;  // JSON
  std::vector<NamedTensor> tensors;
  std::vector<std::string> warnings = {};
};

/// `content`: what a checkpoint at `path` holds of the model: adapters, and weights that trained
/// next to them, whose modules become modules_to_save as a whole, including weights that did not
/// train. A tensor's module is the prefix of its name ("fc1" of "fc1.weight"), else the module of
/// the operator that reads it; then `names.strip` is removed and `names.add` put in front. Weights
/// get PyTorch's orientation, adapters PEFT's, [r, in] and [out, r]. Throws Error{usage} where a
/// tensor has no module or several, where PEFT would not adapt what is adapted here, where no name
/// has the prefix, and where rules give weights different dropouts, since PEFT has only one number
/// for all.
PeftAdapter peft_adapter(CheckpointContent content, ConfiguredModel& model, const std::string& path,
                         const ExportNames& names);

}  // namespace tandem::api
