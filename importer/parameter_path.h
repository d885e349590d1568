// The path that users write for a parameter.
#pragma once

#include <string>

namespace tandem::importer {

/// "fc1:weight" of "fc1.weight"; the name itself where it has no scope.
std::string parameter_path(const std::string& initializer);

}  // namespace tandem::importer
