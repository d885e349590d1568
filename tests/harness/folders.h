// Where the source tree and the build are.
#pragma once

#include <string>

namespace tandem {

// Functions, not definitions of the compiler: a compiler cache then serves clones in other folders.
const std::string& source_folder();
const std::string& build_folder();

}  // namespace tandem
