// What onnxruntime makes of a model, where a Python on this machine has it.
#pragma once

#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"

namespace tandem::api {

struct OnnxruntimeOutputs {
  std::vector<HostTensor> values;  // one a name; empty where there are none
  std::string why_not;             // for people: "python3 has no module onnxruntime"
};

/// Runs the model on its inputs in a process of `python`, which is looked for in PATH; nothing but
/// a folder in TMPDIR is written. What goes wrong there is `why_not`, no Error.
OnnxruntimeOutputs onnxruntime_outputs(const std::string& python, const std::string& model,
                                       const std::vector<NamedTensor>& inputs,
                                       const std::vector<std::string>& outputs);

}  // namespace tandem::api
