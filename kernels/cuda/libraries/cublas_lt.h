// The functions of cuBLASLt that kernels call, as pointers.
#pragma once

#include <cublasLt.h>

#define TANDEM_CUBLAS_LT_FUNCTIONS(function)                                                       \
  function(cublasLtGetVersion) function(cublasLtGetStatusName) function(cublasLtGetStatusString)   \
      function(cublasLtCreate) function(cublasLtDestroy) function(cublasLtMatmulDescCreate)        \
          function(cublasLtMatmulDescDestroy) function(cublasLtMatmulDescSetAttribute)             \
              function(cublasLtMatmulDescGetAttribute) function(cublasLtMatrixLayoutCreate)        \
                  function(cublasLtMatrixLayoutDestroy) function(cublasLtMatrixLayoutSetAttribute) \
                      function(cublasLtMatrixLayoutGetAttribute)                                   \
                          function(cublasLtMatmulPreferenceCreate)                                 \
                              function(cublasLtMatmulPreferenceDestroy)                            \
                                  function(cublasLtMatmulPreferenceSetAttribute)                   \
                                      function(cublasLtMatmulAlgoGetHeuristic)                     \
                                          function(cublasLtMatmulAlgoCheck) function(              \
                                              cublasLtMatmulAlgoCapGetAttribute)                   \
                                              function(cublasLtMatmulAlgoConfigGetAttribute)       \
                                                  function(cublasLtMatmulAlgoConfigSetAttribute)   \
                                                      function(cublasLtMatmul)

namespace tandem::cuda {

/// Members have the functions' own names: `cublas_lt->cublasLtMatmul(…)`. None is null in a library
/// that was opened.
struct CublasLt {
#define TANDEM_MEMBER(name) decltype(&::name) name = nullptr;
  TANDEM_CUBLAS_LT_FUNCTIONS(TANDEM_MEMBER)
#undef TANDEM_MEMBER
};

}  // namespace tandem::cuda
