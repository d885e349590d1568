// An ncclComm_t that does not block, with its start, queries, end and error texts.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "engine/graph/types.h"
#include "engine/ranks/communicator.h"
#include "kernels/cuda/libraries/nccl.h"

namespace tandem::cuda {

/// What went wrong, and how to fix it.
struct NcclProblem {
  std::string what, fix;
};

/// "unhandled system error (ncclSystemError): Call to connect failed", with what fixes it. `result`
/// is the last call's.
NcclProblem problem_of(const Nccl& nccl, ncclResult_t result);

/// Elements as NCCL moves them: integers of two bytes are two of one byte.
struct NcclElements {
  ncclDataType_t type = ncclUint8;
  std::size_t of_each = 1;
};
NcclElements moved_as(DType dtype);
/// Null where NCCL does not reduce the type in that way.
struct NcclReduction {
  ncclDataType_t type;
  ncclRedOp_t operation;
};
std::optional<NcclReduction> reduced_as(DType dtype, Reduction reduction);

/// Each call waits for other ranks at most for a limited time. One thread at a time.
class NcclHandle {
 public:
  using Limit = std::chrono::milliseconds;
  /// What ends a wait early; nothing while all is well.
  using Interruption = std::function<std::optional<std::string>()>;

  explicit NcclHandle(const Nccl& nccl) : nccl_(nccl) {}
  ~NcclHandle() { abort(); }
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  /// The GPU is chosen.
  std::optional<NcclProblem> start(const ncclUniqueId& id, int rank, int ranks, Limit limit,
                                   const Interruption& interruption);
  /// Waits for what a call that gave `result` has begun: NCCL puts operations on the stream in a
  /// thread of its own.
  std::optional<NcclProblem> settle(ncclResult_t result, Limit limit,
                                    const Interruption& interruption);
  /// What has gone wrong since; never waits.
  std::optional<NcclProblem> problem();
  /// To be called once all ranks have ended their operations; aborts where ending takes longer than
  /// the limit.
  void finish(Limit limit);
  void abort();
  ncclComm_t get() const { return communicator_; }  // null before the start and after the end

 private:
  const Nccl& nccl_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace tandem::cuda
