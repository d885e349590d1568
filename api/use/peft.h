// Adapters as PEFT reads them: adapter_model.safetensors with adapter_config.json.
#pragma once

#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"
#include "engine/passes/lora.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The two files as they are to be written.
struct PeftAdapter {
  std::string config;  // JSON
  std::vector<NamedTensor> tensors;
};

/// `tensors`: what a checkpoint has of the model: adapters, and what trained beside them, which
/// becomes modules_to_save. A tensor's module is that of its name ("fc1" of "fc1.weight"), else of
/// the operator of `graph` that reads it, then without `names.strip` and behind `names.add`.
/// Weights get PyTorch's orientation, adapters PEFT's, [r, in] and [out, r]. Throws Error{usage}
/// where a tensor has no module or several, where something else of a module with adapters trained,
/// where no name has the prefix, and where rules give weights different dropouts, for which PEFT
/// has one number.
PeftAdapter peft_adapter(const std::vector<AdaptedWeight>& adapted,
                         const std::vector<NamedTensor>& tensors, const Graph& graph,
                         const ExportNames& names, const std::string& base_model);

}  // namespace tandem::api
