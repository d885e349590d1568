// A run without a train.toml: its configuration is guessed and stays in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// Whether an override sets this key, a part of it, or a table that contains it.
bool says(const std::string& item, const std::string& key);

/// Whether a run is described by an ONNX file instead of a train.toml.
bool is_guessed(const std::string& path);

/// Predictions need no loss and no labels. Evaluations and predictions run models in stages where
/// data decides extents.
enum class GuessedUse : std::uint8_t { training, evaluation, prediction };

/// `overrides`: keys, and the data as "data=PATH". `has_loss`: they give the terms of the loss and
/// all fields of it. Throws Error{usage} with everything that could not be guessed and that they do
/// not give. `options.on_message` reports what was guessed; `options` also receive the policy's
/// rules.
RunConfig guessed_run_config(const std::string& model, TrainOptions& options,
                             std::vector<std::string> overrides,
                             GuessedUse use = GuessedUse::training, bool has_loss = false);

}  // namespace tandem::api
