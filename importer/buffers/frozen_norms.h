// Weights and biases of batch normalizations that a file writes as arithmetic over their running
// statistics, as torchvision's FrozenBatchNorm2d.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Initializers named `weight` and `bias` next to a `running_mean` or `running_var` that no
/// BatchNormalization reads. True: the file also computes scale = weight * rsqrt(running_var +
/// epsilon) and running_mean * scale, both without the samples.
std::unordered_map<std::string, bool> frozen_affines(const OnnxFile::Content& file,
                                                     const std::vector<bool>& needed);

}  // namespace tandem::importer
