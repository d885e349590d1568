// Shared libraries for one test, compiled from a few lines of C.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/cublas_lt.h"
#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/libraries/nccl.h"
#include "kernels/cuda/libraries/nvrtc.h"

namespace tandem::testing {

#define TANDEM_NAME(name) #name,
inline const std::vector<std::string> cublas_lt_functions{TANDEM_CUBLAS_LT_FUNCTIONS(TANDEM_NAME)};
inline const std::vector<std::string> cudnn_functions{TANDEM_CUDNN_FUNCTIONS(TANDEM_NAME)};
inline const std::vector<std::string> nvrtc_functions{TANDEM_NVRTC_FUNCTIONS(TANDEM_NAME)};
inline const std::vector<std::string> nccl_functions{TANDEM_NCCL_FUNCTIONS(TANDEM_NAME)};
#undef TANDEM_NAME

/// Compiles C code to the shared library `path`; makes its folder.
inline void compile_library(const std::string& path, const std::string& code) {
  const std::string source = path + ".c";
  std::string command = "mkdir -p '" + path.substr(0, path.rfind('/')) + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ofstream(source) << code;
  command =
      std::string(TANDEM_CXX_COMPILER) + " -x c -shared -fPIC -o '" + path + "' '" + source + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << code;
}

/// C code of these functions with empty bodies, except those that `code` defines.
inline std::string functions_that_do_nothing(const std::vector<std::string>& names,
                                             const std::string& code) {
  std::string text = code + "\n";
  for (const std::string& name : names) {
    if (code.find(" " + name + "(") == std::string::npos) text += "void " + name + "(void) {}\n";
  }
  return text;
}

}  // namespace tandem::testing
