// Reports on CUDA: the lines of `doctor`, and why a GPU that a policy names is not available.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/graph/error.h"
#include "kernels/cuda_devices.h"

namespace tandem::api {

/// Lines of `tandem doctor`.
std::string cuda_text(const CudaReport& report);
/// "not in this build", or an object (docs/formats.md).
nlohmann::ordered_json cuda_json(const CudaReport& report);

/// Message, expected and fix where there is no usable GPU of this use, "cuda:0".
std::optional<Diagnostic> missing_gpu(const CudaReport& report, const std::string& use);

}  // namespace tandem::api
