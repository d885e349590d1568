// NVRTC without a compiler: what it "compiles" to is the source itself, in which the fake runtime
// finds kernels by name.
#pragma once

#include <atomic>
#include <cstring>
#include <string>

#include "kernels/cuda/libraries/nvrtc.h"
#include "tests/cuda/support/fake_card.h"

namespace tandem::testing {

class FakeNvrtc final : public cuda::Libraries {
 public:
  FakeNvrtc() {
    table_.nvrtcVersion = [](int* major, int* minor) {
      *major = 13, *minor = 0;
      return NVRTC_SUCCESS;
    };
    table_.nvrtcGetErrorString = [](nvrtcResult) -> const char* { return "NVRTC_ERROR"; };
    table_.nvrtcGetNumSupportedArchs = [](int* count) {
      *count = 3;
      return NVRTC_SUCCESS;
    };
    table_.nvrtcGetSupportedArchs = [](int* architectures) {
      architectures[0] = 80, architectures[1] = 86, architectures[2] = 90;
      return NVRTC_SUCCESS;
    };
    table_.nvrtcCreateProgram = [](nvrtcProgram* program, const char* source, const char*,
                                   int headers, const char* const* texts,
                                   const char* const* names) {
      auto* const made = new Made{source, "", headers};
      for (int i = 0; i < headers; ++i) {
        if (std::strlen(texts[i]) == 0 || std::strlen(names[i]) == 0) return NVRTC_ERROR_INVALID_INPUT;
      }
      *program = reinterpret_cast<nvrtcProgram>(made);
      return NVRTC_SUCCESS;
    };
    table_.nvrtcDestroyProgram = [](nvrtcProgram* program) {
      delete &of(*program);
      return NVRTC_SUCCESS;
    };
    table_.nvrtcCompileProgram = [](nvrtcProgram program, int count, const char* const* options) {
      ++compiled;
      for (int i = 0; i < count; ++i) of(program).options += std::string(options[i]) + " ";
      return of(program).source.find("does not compile") == std::string::npos
                 ? NVRTC_SUCCESS
                 : NVRTC_ERROR_COMPILATION;
    };
    table_.nvrtcGetProgramLogSize = [](nvrtcProgram, std::size_t* size) {
      *size = 4;
      return NVRTC_SUCCESS;
    };
    table_.nvrtcGetProgramLog = [](nvrtcProgram, char* log) {
      std::memcpy(log, "log", 4);
      return NVRTC_SUCCESS;
    };
    table_.nvrtcGetCUBINSize = [](nvrtcProgram program, std::size_t* size) {
      *size = code(program, "cubin").size() + 1;
      return NVRTC_SUCCESS;
    };
    table_.nvrtcGetCUBIN = [](nvrtcProgram program, char* to) {
      std::strcpy(to, code(program, "cubin").c_str());
      return NVRTC_SUCCESS;
    };
    table_.nvrtcGetPTXSize = [](nvrtcProgram program, std::size_t* size) {
      *size = code(program, "ptx").size() + 1;
      return NVRTC_SUCCESS;
    };
    table_.nvrtcGetPTX = [](nvrtcProgram program, char* to) {
      std::strcpy(to, code(program, "ptx").c_str());
      return NVRTC_SUCCESS;
    };
  }

  static inline std::atomic<int> compiled{0};  // programs, of all objects

  const cuda::CublasLt* cublas_lt() override { return nullptr; }
  const cuda::Cudnn* cudnn() override { return nullptr; }
  const cuda::Nvrtc* nvrtc() override { return &table_; }
  const cuda::Nccl* nccl() override { return nullptr; }
  std::vector<CudaLibraryReport> report() override { return {}; }

 private:
  struct Made {
    std::string source, options;
    int headers = 0;
  };
  static Made& of(nvrtcProgram program) { return *reinterpret_cast<Made*>(program); }
  static std::string code(nvrtcProgram program, const std::string& kind) {
    return kind + " " + of(program).options + "\n" + of(program).source;
  }

  cuda::Nvrtc table_;
};

}  // namespace tandem::testing
