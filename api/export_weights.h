// Writes weights as ONNX (the user's own graph), safetensors or npz, by the file's ending.
#pragma once

#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"
#include "importer/onnx_file.h"

namespace tandem::api {

/// Returns a line for people. Throws Error{usage} for another ending.
std::string export_weights(const OnnxFile& file, const std::vector<NamedTensor>& weights,
                           const std::string& to);

}  // namespace tandem::api
