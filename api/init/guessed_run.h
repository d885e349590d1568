// A run without a train.toml: its configuration is guessed and stays in memory.
#pragma once

#include <string>
#include <vector>

#include "engine/training/config/run_config.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// Whether a run is described by an ONNX file and data. Throws Error{usage} where `data` goes with
/// a train.toml, which names its own.
bool is_guessed(const std::string& path, const std::string& data);

/// Throws Error{usage} with everything that could not be guessed and that `overrides` do not say.
/// `options` hear what was guessed, and get the policy's rules.
RunConfig guessed_run_config(const std::string& model, TrainOptions& options,
                             const std::vector<std::string>& overrides);

}  // namespace tandem::api
