// The committed list of operators without a GPU kernel and of cases that no GPU kernel takes.
#pragma once

#include <fstream>
#include <set>
#include <string>

#include "tests/harness/folders.h"

namespace tandem::testing {

inline const std::string listed_gaps_path =
    source_folder() + "/tests/cuda/operators_without_kernel.txt";

/// Entries such as "TopK: no kernel", "MatMul: vector"; lines with # give reasons and are skipped.
inline std::set<std::string> listed_gaps() {
  std::set<std::string> lines;
  std::ifstream file(listed_gaps_path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.insert(line);
  }
  return lines;
}

}  // namespace tandem::testing
