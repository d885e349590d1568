// NVRTC without a compiler: its "compiled" code is the source itself, in which the fake runtime
// finds kernels by name.
#pragma once

#include <atomic>
#include <cstring>
#include <string>

#include "kernels/cuda/libraries/nvrtc.h"
#include "tests/cuda/support/fake_gpu.h"

namespace tandem::testing {

/// How many programs were compiled so far.
inline std::atomic<int> fake_nvrtc_compiled{0};

struct FakeProgram {
  std::string source, options;
};
inline FakeProgram& fake_program(nvrtcProgram program) {
  return *reinterpret_cast<FakeProgram*>(program);
}
inline std::string fake_code(nvrtcProgram program, const std::string& kind) {
  return kind + " " + fake_program(program).options + "\n" + fake_program(program).source;
}

/// Supports the architectures 80, 86 and 90. A source with the words "does not compile" fails.
inline const cuda::Nvrtc& fake_nvrtc() {
  static const cuda::Nvrtc own = [] {
    cuda::Nvrtc table;
    table.nvrtcVersion = [](int* major, int* minor) {
      *major = 13, *minor = 0;
      return NVRTC_SUCCESS;
    };
    table.nvrtcGetErrorString = [](nvrtcResult) -> const char* { return "NVRTC_ERROR"; };
    table.nvrtcGetNumSupportedArchs = [](int* count) {
      *count = 3;
      return NVRTC_SUCCESS;
    };
    table.nvrtcGetSupportedArchs = [](int* architectures) {
      architectures[0] = 80, architectures[1] = 86, architectures[2] = 90;
      return NVRTC_SUCCESS;
    };
    table.nvrtcCreateProgram = [](nvrtcProgram* program, const char* source, const char*,
                                  int headers, const char* const* texts, const char* const* names) {
      for (int i = 0; i < headers; ++i) {
        if (std::strlen(texts[i]) == 0 || std::strlen(names[i]) == 0)
          return NVRTC_ERROR_INVALID_INPUT;
      }
      *program = reinterpret_cast<nvrtcProgram>(new FakeProgram{source, ""});
      return NVRTC_SUCCESS;
    };
    table.nvrtcDestroyProgram = [](nvrtcProgram* program) {
      delete &fake_program(*program);
      return NVRTC_SUCCESS;
    };
    table.nvrtcCompileProgram = [](nvrtcProgram program, int count, const char* const* options) {
      ++fake_nvrtc_compiled;
      for (int i = 0; i < count; ++i)
        fake_program(program).options += std::string(options[i]) + " ";
      return fake_program(program).source.find("does not compile") == std::string::npos
                 ? NVRTC_SUCCESS
                 : NVRTC_ERROR_COMPILATION;
    };
    table.nvrtcGetProgramLogSize = [](nvrtcProgram, std::size_t* size) {
      *size = 4;
      return NVRTC_SUCCESS;
    };
    table.nvrtcGetProgramLog = [](nvrtcProgram, char* log) {
      std::memcpy(log, "log", 4);
      return NVRTC_SUCCESS;
    };
    table.nvrtcGetCUBINSize = [](nvrtcProgram program, std::size_t* size) {
      *size = fake_code(program, "cubin").size() + 1;
      return NVRTC_SUCCESS;
    };
    table.nvrtcGetCUBIN = [](nvrtcProgram program, char* to) {
      std::strcpy(to, fake_code(program, "cubin").c_str());
      return NVRTC_SUCCESS;
    };
    table.nvrtcGetPTXSize = [](nvrtcProgram program, std::size_t* size) {
      *size = fake_code(program, "ptx").size() + 1;
      return NVRTC_SUCCESS;
    };
    table.nvrtcGetPTX = [](nvrtcProgram program, char* to) {
      std::strcpy(to, fake_code(program, "ptx").c_str());
      return NVRTC_SUCCESS;
    };
    return table;
  }();
  return own;
}

inline std::shared_ptr<cuda::Libraries> nvrtc_alone() {
  return std::make_shared<GivenLibraries>(LibraryTables{.nvrtc = &fake_nvrtc()});
}

}  // namespace tandem::testing
