#include "tests/harness/folders.h"

namespace tandem {

const std::string& source_folder() {
  static const std::string folder = TANDEM_SOURCE_DIR;
  return folder;
}

const std::string& build_folder() {
  static const std::string folder = TANDEM_BUILD_DIR;
  return folder;
}

}  // namespace tandem
