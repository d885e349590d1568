// Small libraries that report a given version, in folders of a test.
#pragma once

#include <gtest/gtest.h>

#include <cublas_api.h>
#include <cuda_runtime_api.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/real_libraries.h"
#include "tests/cuda/support/small_libraries.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {

inline const std::string series = std::to_string(CUDART_VERSION / 1000);  // "13"

class Folders : public ::testing::Test {
 protected:
  std::string add(const std::string& folder) {
    std::filesystem::create_directories(folder_ / folder);
    return folder_ / folder;
  }
  TemporaryFolder folder_;
};

/// The code of each library at a given version.
inline std::string cublas_lt(int major, int minor) {
  const std::string number = std::to_string(major * 10000 + minor * 100 + 2);
  return functions_that_do_nothing(
      cublas_lt_functions, "unsigned long cublasLtGetVersion(void) { return " + number + "; }");
}
inline std::string cudnn(int major, int minor, int cuda = CUDART_VERSION) {
  const std::string number = std::to_string(major * 10000 + minor * 100 + 3);
  return functions_that_do_nothing(cudnn_functions,
                                   "unsigned long cudnnGetVersion(void) { return " + number +
                                       "; }\nunsigned long cudnnGetCudartVersion(void) { return " +
                                       std::to_string(cuda) + "; }");
}
inline std::string nvrtc(int major, int minor) {
  return functions_that_do_nothing(
      nvrtc_functions, "int nvrtcVersion(int* a, int* b) { *a = " + std::to_string(major) +
                           "; *b = " + std::to_string(minor) + "; return 0; }");
}
inline std::string nccl(int major, int minor) {
  const std::string number = std::to_string(major * 10000 + minor * 100 + 4);
  return functions_that_do_nothing(
      nccl_functions, "int ncclGetVersion(int* to) { *to = " + number + "; return 0; }");
}

inline constexpr int nvrtc_minor = CUDART_VERSION % 1000 / 10;

class SmallLibraries : public Folders {
 protected:
  std::string cublas_lt_file() const {
    return "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  }
  std::string cudnn_file() const { return "libcudnn.so." + std::to_string(CUDNN_MAJOR); }
  std::string nvrtc_file() const { return "libnvrtc.so." + series; }
  std::string nccl_file() const { return "libnccl.so." + std::to_string(NCCL_MAJOR); }

  void add_library(const std::string& file, const std::string& code,
                   const std::string& folder = "a") {
    compile_library(folder_ / folder + "/" + file, code);
  }
  /// The libraries that cuDNN and NVRTC open themselves.
  void add_parts(const std::string& code = "int part;") {
    add_library("libcudnn_graph.so." + std::to_string(CUDNN_MAJOR), code);
    add_library("libnvrtc-builtins.so." + series + "." + std::to_string(nvrtc_minor), code);
  }
  std::shared_ptr<cuda::Libraries> open(const std::vector<std::string>& folders = {"a"}) {
    cuda::LibraryPlaces places{{}, false, {}};
    for (const std::string& folder : folders) places.others.push_back(add(folder));
    return cuda::make_libraries(places);
  }
  FoundLibrary report_of(const std::string& name, cuda::Libraries& libraries) {
    for (const FoundLibrary& report : libraries.report()) {
      if (report.name == name) return report;
    }
    ADD_FAILURE() << name;
    return {};
  }
};

}  // namespace tandem::testing
