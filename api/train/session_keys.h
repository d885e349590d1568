// Which keys of train.toml a Session honours. It refuses all others by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/training/config/run_config.h"

namespace tandem::api {

/// Paths of train_keys(), each with all keys below it; of "model" only those that are listed.
std::span<const std::string_view> session_keys();
/// False for every key that neither is listed there nor lies below one that is.
bool session_honours(std::string_view pattern);

/// The configuration of a Session. Throws Error{usage} with everything that is wrong, among it each
/// key, and each value of a key, that a Session does not honour: with what to do instead.
RunConfig session_config(const std::string& model_path, std::int64_t batch_size,
                         const std::vector<std::string>& settings);

}  // namespace tandem::api
