// Paths of the source tree and of the build folder.
#pragma once

#include <string>

namespace tandem {

// Functions, not compiler definitions, so that a compiler cache also serves clones in other
// folders.
const std::string& source_folder();
const std::string& build_folder();

}  // namespace tandem
