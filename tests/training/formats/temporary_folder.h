// A folder for one test's files, removed at its end, and the comparison of what was read back.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "engine/graph/host_tensor.h"

namespace tandem::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline bool same_bytes(const HostTensor& a, const HostTensor& b) {
  if (a.type() != b.type()) return false;
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace tandem::testing
