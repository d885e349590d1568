// Reports on accelerators, for `doctor` or for a policy that names a missing one.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/graph/error.h"
#include "kernels/device_backend.h"

namespace tandem::api {

/// Lines of `tandem doctor`.
std::string device_text(const DeviceFamily& family, const DeviceReport& report);
/// "not in this build", or an object (docs/formats.md).
nlohmann::ordered_json device_json(const DeviceFamily& family, const DeviceReport& report);

/// Message, expected and fix if there is no usable device of this use, "cuda:0".
std::optional<Diagnostic> missing_device(const DeviceReport& report, const std::string& use);

}  // namespace tandem::api
