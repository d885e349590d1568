// Paths as the system has them now, with failures in Tandem's own form.
#pragma once

#include <string>

namespace tandem {

/// From the root; links and ".." stay as they are. Throws Error{usage} for an empty path,
/// Error{runtime} where the current folder is gone or must not be read.
std::string absolute_path(const std::string& path);

/// Like absolute_path, and without ".", ".." and repeated slashes.
std::string normal_path(const std::string& path);

/// Throws Error{runtime} as above.
std::string current_folder();

}  // namespace tandem
