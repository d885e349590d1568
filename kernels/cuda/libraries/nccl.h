// The functions of NCCL that collectives call, as pointers.
#pragma once

#include <nccl.h>

#define TANDEM_NCCL_FUNCTIONS(function)                                                     \
  function(ncclGetVersion) function(ncclGetErrorString) function(ncclGetLastError)          \
      function(ncclGetUniqueId) function(ncclCommInitRankConfig) function(ncclCommFinalize) \
          function(ncclCommDestroy) function(ncclCommAbort) function(ncclCommGetAsyncError) \
              function(ncclAllReduce) function(ncclAllGather) function(ncclReduceScatter)   \
                  function(ncclReduce) function(ncclBroadcast) function(ncclSend)           \
                      function(ncclRecv) function(ncclGroupStart) function(ncclGroupEnd)

namespace tandem::cuda {

/// Members have the functions' own names: `nccl->ncclAllReduce(…)`. None is null in a library that
/// was opened.
struct Nccl {
#define TANDEM_MEMBER(name) decltype(&::name) name = nullptr;
  TANDEM_NCCL_FUNCTIONS(TANDEM_MEMBER)
#undef TANDEM_MEMBER
};

}  // namespace tandem::cuda
