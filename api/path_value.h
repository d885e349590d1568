// Texts and paths of arguments as values of train.toml.
#pragma once

#include <string>

namespace tandem::api {

/// The text itself. Throws Error{usage} for one that is no UTF-8, which train.toml could not hold.
std::string text_value(const std::string& text);
/// Absolute and normal; refuses what text_value does.
std::string path_value(const std::string& path);

}  // namespace tandem::api
