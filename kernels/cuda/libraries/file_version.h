// Finds the version of a library's file without loading it: loading two of one library mixes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem::cuda {

struct FileVersion {
  std::vector<int> numbers;  // two or more: {9, 19, 0}
  int cuda = 0;              // CUDA version in its package's name: 13 of nvidia-cudnn-cu13; 0: none

  std::string text() const;
};

/// By the name of the file that links lead to (libcudnn.so.9 -> libcudnn.so.9.19.0), else by the
/// Python package that has installed it: among the packages next to its `nvidia` folder the only
/// one whose list of files has it. Nothing where neither gives a version.
std::optional<FileVersion> version_of_file(const std::string& path);

}  // namespace tandem::cuda
