// The weights of a model file by themselves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"
#include "importer/file/onnx_file.h"

namespace tandem {

struct OnnxWeights {
  std::vector<NamedTensor> tensors;  // parameters and running statistics, in the file's order
  std::map<std::string, std::string> aliases;  // other names of one of them, where they share bytes
};

/// What import would make states of. Tensors are pages of the file where that is possible, and keep
/// it.
OnnxWeights onnx_weights(const OnnxFile& file);

}  // namespace tandem
