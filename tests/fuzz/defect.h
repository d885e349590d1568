// How a fuzz target ends when it finds a defect.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tandem {

[[noreturn]] inline void defect(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", what, text.c_str());
  std::abort();
}

}  // namespace tandem
