// Runs the command line program through a shell.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "tests/harness/folders.h"

namespace tandem::testing {

inline const std::string program = build_folder() + "/tandem";

struct Ended {
  int code = -1;
  std::string text;  // standard output
};

/// `before`: shell text in front of the program's name.
inline Ended run_program(const std::string& arguments, const std::string& before = "") {
  Ended ended;
  FILE* pipe = popen((before + program + " " + arguments).c_str(), "r");
  if (pipe == nullptr) return ended;
  char part[4096];
  for (std::size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) ended.text.append(part, n);
  ended.code = WEXITSTATUS(pclose(pipe));
  return ended;
}

}  // namespace tandem::testing
