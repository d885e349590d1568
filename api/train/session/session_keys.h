// The keys of train.toml that a Session supports. It refuses all others by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/run_config.h"
#include "tandem/session_config.h"

namespace tandem::api {

/// Paths of train_keys(), each including all keys below it; for "model" only the listed ones.
std::span<const std::string_view> session_keys();
/// Whether the key is listed there or lies below a listed one.
bool session_honours(std::string_view pattern);

/// The configuration of a Session. Throws Error{usage} with everything that is wrong, including
/// each key, and each value of a key, that a Session does not support, with an alternative.
/// `policy`: one that is no file; null: the settings'.
RunConfig session_config(const std::string& model_path, std::int64_t batch_size,
                         const std::vector<std::string>& settings, const Policy* policy = nullptr);
RunConfig session_config(const SessionConfig& config);

}  // namespace tandem::api
