// The text of a train.toml, for the objects of the C library.
#pragma once

#include <string>
#include <vector>

#include "tandem/train_config.h"

namespace tandem::c_library {

/// The configuration that a text gives; `path` names it in messages and anchors its relative paths.
/// Throws Error{usage} with everything that is wrong in it under these overrides.
api::TrainConfig train_config_of(const std::string& text, const std::string& path,
                                 const std::vector<std::string>& overrides);

/// The text as settings of a Session: "optimizer.lr=0.01". Throws Error{usage} where it is no TOML.
std::vector<std::string> session_settings_of(const std::string& text);

}  // namespace tandem::c_library
