// The functions of NVRTC, the compiler of kernels at run time, as pointers.
#pragma once

#include <nvrtc.h>

#define TANDEM_NVRTC_FUNCTIONS(function)                                                           \
  function(nvrtcVersion) function(nvrtcGetErrorString) function(nvrtcGetNumSupportedArchs)         \
      function(nvrtcGetSupportedArchs) function(nvrtcCreateProgram) function(nvrtcDestroyProgram)  \
          function(nvrtcAddNameExpression) function(nvrtcCompileProgram)                           \
              function(nvrtcGetLoweredName) function(nvrtcGetProgramLogSize)                       \
                  function(nvrtcGetProgramLog) function(nvrtcGetCUBINSize) function(nvrtcGetCUBIN) \
                      function(nvrtcGetPTXSize) function(nvrtcGetPTX)

namespace tandem::cuda {

/// Members have the functions' own names: `nvrtc->nvrtcCompileProgram(…)`. None is null in a
/// library that was opened.
struct Nvrtc {
#define TANDEM_MEMBER(name) decltype(&::name) name = nullptr;
  TANDEM_NVRTC_FUNCTIONS(TANDEM_MEMBER)
#undef TANDEM_MEMBER
};

}  // namespace tandem::cuda
