// Adapters as PEFT reads them: adapter_model.safetensors with adapter_config.json.
#pragma once

#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"
#include "engine/passes/lora.h"

namespace tandem::api {

/// The two files as they are to be written.
struct PeftAdapter {
  std::string config;  // JSON
  std::vector<NamedTensor> tensors;
};

/// `tensors`: what a checkpoint has of the model: adapters, and what trained beside them, which
/// becomes modules_to_save. Adapters get PEFT's orientation, [r, in] and [out, r]. Throws
/// Error{usage} where a weight's name says no module ("fc1.weight" does), where something else of a
/// module with adapters trained, and where rules give weights different dropouts, for which PEFT
/// has one number.
PeftAdapter peft_adapter(const std::vector<AdaptedWeight>& adapted,
                         const std::vector<NamedTensor>& tensors, const std::string& base_model);

}  // namespace tandem::api
