// How a fuzz target ends where what it tests is wrong.
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
