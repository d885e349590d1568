// Outputs of a model in onnxruntime, where a Python on this machine has it.
#pragma once

#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"

namespace tandem::api {

struct OnnxruntimeOutputs {
  std::vector<HostTensor> values;  // one per name; empty where there are none
  std::string why_not;             // for people: "python3 has no module onnxruntime"
};

/// Runs the model on its inputs in a process of `python`, which is searched in PATH; writes only a
/// folder in TMPDIR. A failure there is reported in `why_not` and throws no Error.
OnnxruntimeOutputs onnxruntime_outputs(const std::string& python, const std::string& model,
                                       const std::vector<NamedTensor>& inputs,
                                       const std::vector<std::string>& outputs);

}  // namespace tandem::api
