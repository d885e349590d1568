// Writes weights as ONNX (the user's own graph), safetensors or npz, by the file's ending.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"
#include "engine/formats/named_tensor.h"

namespace tandem::api {

/// Returns lines for people: what was written. Throws Error{usage} for another ending.
std::string export_weights(const Engine& engine, const OnnxFile& file, const RunConfig& config,
                           const std::vector<NamedTensor>& weights, const std::string& to);

}  // namespace tandem::api
