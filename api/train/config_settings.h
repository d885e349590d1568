// The public structs of configurations as settings, as files and command lines give them.
#pragma once

#include "engine/config/keys/config_value.h"
#include "tandem/session_config.h"
#include "tandem/train_config.h"

namespace tandem::api {

/// Keys that are set. Messages name the struct in place of a file.
ConfigValue settings_of(const TrainConfig& config);
/// Likewise without the model's file and the batch size; the metrics are those of `eval`.
ConfigValue settings_of(const SessionConfig& config);
/// Members that settings without mistakes give.
TrainConfig config_of(const ConfigValue& settings);

/// A table of settings as TOML that reads back to the same settings.
std::string toml_of(const ConfigValue& settings);

}  // namespace tandem::api
