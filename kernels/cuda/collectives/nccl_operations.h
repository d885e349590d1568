// A communicator of NCCL's as one rank has it: operations on streams, watched, and its end.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "kernels/cuda/collectives/nccl_communicator.h"
#include "kernels/cuda/collectives/nccl_handle.h"
#include "kernels/cuda/collectives/watched_operations.h"
#include "kernels/cuda/device/cuda_stream.h"

namespace tandem::cuda {

/// "cuda:0: rank 1 of 4", for errors.
std::string who(const NcclOptions& options, const Rendezvous& ranks);

/// Any thread may call it; what has failed stays failed.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const NcclOptions& options, std::shared_ptr<Rendezvous> rendezvous,
                   std::shared_ptr<Runtime> runtime, std::shared_ptr<Libraries> libraries,
                   const Nccl& nccl)
      : options_(options),
        rendezvous_(std::move(rendezvous)),
        runtime_(std::move(runtime)),
        libraries_(std::move(libraries)),
        nccl_(nccl),
        handle_(nccl),
        watched_(runtime_) {}
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// To be called once, before all else; `id` is that of rank 0. Chooses the GPU.
  std::optional<NcclProblem> start(const ncclUniqueId& id);
  /// To be called after a start that failed here or on another rank.
  void give_up() { handle_.abort(); }

  int rank() const override { return rendezvous_->rank(); }
  int ranks() const override { return rendezvous_->ranks(); }

  void enqueue(Stream& stream, std::string_view name, const Exchange& exchange) override;
  void watch(Stream& stream, std::string_view name) override;
  void check() override;
  void wait(Stream& stream) override;
  void abort(const std::string& why) override;

 private:
  /// NCCL's result for a stream; `parts`: of an all_gather or reduce_scatter.
  ncclResult_t call(const Exchange& exchange, std::span<const RankParts> parts,
                    const NcclReduction& as, cudaStream_t queue) const;
  /// All parts in one launch.
  ncclResult_t call_parts(const Exchange& exchange, std::span<const RankParts> parts,
                          const NcclReduction& as, cudaStream_t queue) const;
  /// One part; a call for each rank where not all parts are full.
  ncclResult_t gather(const RankParts& parts, DType dtype, cudaStream_t queue) const;
  ncclResult_t scatter(const RankParts& parts, DType dtype, const NcclReduction& as,
                       cudaStream_t queue) const;
  /// Sends each part to its rank and receives one from it.
  ncclResult_t exchange_parts(const RankElements& elements, const NcclElements& as,
                              cudaStream_t queue) const;
  CudaStream& of_gpu(Stream& stream, const char* kind, std::string_view name) const;
  NcclReduction reduction_of(const char* kind, std::string_view name, DType dtype,
                             Reduction reduction) const;
  void check_locked();
  void check_runtime(cudaError_t error, const char* what);
  void throw_failure() const;
  /// Aborts; from now on everything throws this.
  [[noreturn]] void fail(const std::string& what, const NcclProblem& problem);
  [[noreturn]] void refuse(const char* kind, std::string_view name, const std::string& what,
                           const std::string& fix) const;

  const NcclOptions options_;
  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::shared_ptr<Runtime> runtime_;
  const std::shared_ptr<Libraries> libraries_;
  const Nccl& nccl_;
  mutable std::mutex mutex_;  // no thread may be in a call of NCCL's while another one aborts
  NcclHandle handle_;
  WatchedOperations watched_;
  cudaEvent_t waited_ = nullptr;
  std::chrono::steady_clock::time_point looked_;  // when it last asked about other ranks
  std::optional<Diagnostic> failure_;
  // Arguments of the operation that is enqueued; kept so that their memory is used again.
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<ByteAccess> accesses_;
};

}  // namespace tandem::cuda
