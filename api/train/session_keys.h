// Which keys of train.toml a Session honours. It refuses all others by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/training/config/run_config.h"

namespace tandem::api {

/// Paths of config_keys(). Options of an optimizer's group are not listed: they are honoured where
/// the optimizer's own are. Those of losses are not either: all of them are honoured.
std::span<const std::string_view> session_keys();
/// False for every key that is not listed there.
bool session_honours(std::string_view pattern);

/// The configuration of a Session. Throws Error{usage} with everything that is wrong, among it each
/// key, and each value of a key, that a Session does not honour: with what to do instead.
RunConfig session_config(const std::string& model_path, std::int64_t batch_size,
                         const std::vector<std::string>& settings);

}  // namespace tandem::api
