// Two files or folders that take each other's names at once.
#pragma once

#include <string>

namespace tandem {

/// Other processes see either both before or both after. False where the file system cannot do
/// that: both are as they were then. Throws Error{runtime} where one of them is not there.
bool exchange_paths(const std::string& one, const std::string& other);

}  // namespace tandem
