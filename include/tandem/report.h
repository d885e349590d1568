// What a command reports: text for people, JSON for programs.
#pragma once

#include <string>
#include <vector>

namespace tandem::api::inline v1 {

struct Report {
  std::string text, json;
  std::vector<std::string> warnings;  ///< for standard error; `json` has them too
  int rank = 0;                       ///< this process's, among those that work together; only 0 reports
};

}  // namespace tandem::api::inline v1
