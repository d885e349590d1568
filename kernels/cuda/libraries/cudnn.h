// The functions of cuDNN that kernels call, as pointers: the backend interface of its graphs.
#pragma once

#include <cudnn_graph.h>
#include <cudnn_version.h>

#define TANDEM_CUDNN_FUNCTIONS(function)                                                    \
  function(cudnnGetVersion) function(cudnnGetCudartVersion) function(cudnnGetErrorString)   \
      function(cudnnGetLastErrorString) function(cudnnCreate) function(cudnnDestroy)        \
          function(cudnnSetStream) function(cudnnBackendCreateDescriptor)                   \
              function(cudnnBackendDestroyDescriptor) function(cudnnBackendFinalize)        \
                  function(cudnnBackendSetAttribute) function(cudnnBackendGetAttribute)     \
                      function(cudnnBackendExecute) function(cudnnBackendPopulateCudaGraph) \
                          function(cudnnBackendUpdateCudaGraph)

namespace tandem::cuda {

/// Members have the functions' own names: `cudnn->cudnnBackendExecute(…)`. None is null in a
/// library that was opened.
struct Cudnn {
#define TANDEM_MEMBER(name) decltype(&::name) name = nullptr;
  TANDEM_CUDNN_FUNCTIONS(TANDEM_MEMBER)
#undef TANDEM_MEMBER
};

}  // namespace tandem::cuda
