#include "kernels/cuda/collectives/nccl_handle.h"

#include <thread>
#include <utility>

namespace tandem::cuda {
namespace {

using Clock = std::chrono::steady_clock;

const char* name_of(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    case ncclInProgress:
      return "ncclInProgress";
    default:
      return "ncclResult_t";
  }
}

const char* fix_of(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "a CUDA call of NCCL failed: see that the driver is new enough and the GPU has "
             "memory "
             "left; NCCL_DEBUG=WARN prints the call";
    case ncclSystemError:
      return "ranks cannot reach each other: NCCL_SOCKET_IFNAME names the network to use, and "
             "containers need shared memory (--shm-size or --ipc=host); NCCL_DEBUG=WARN prints "
             "more";
    case ncclInvalidUsage:
      return "each rank needs a GPU of its own: see CUDA_VISIBLE_DEVICES and the ranks' numbers "
             "on "
             "their machines; NCCL_DEBUG=WARN prints more";
    case ncclRemoteError:
      return "another rank has failed or ended: look at what the other ranks have printed";
    default:
      return "set NCCL_DEBUG=WARN and look at what NCCL prints";
  }
}

std::string seconds_text(std::chrono::milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

NcclProblem problem_of(const Nccl& nccl, ncclResult_t result) {
  std::string what = nccl.ncclGetErrorString(result);
  what += std::string(" (") + name_of(result) + ")";
  const char* const more = nccl.ncclGetLastError(nullptr);
  if (more != nullptr && *more != 0) what += std::string(": ") + more;
  return {std::move(what), fix_of(result)};
}

NcclElements moved_as(DType dtype) { return {ncclUint8, size_of(dtype)}; }

std::optional<NcclReduction> reduced_as(DType dtype, Reduction reduction) {
  if (reduction == Reduction::mean && !is_float(dtype)) return std::nullopt;
  if (reduction == Reduction::sum && dtype == DType::boolean) return std::nullopt;
  constexpr ncclRedOp_t operations[] = {ncclSum, ncclAvg, ncclMax, ncclMin};
  const ncclRedOp_t operation = operations[static_cast<int>(reduction)];
  switch (dtype) {
    case DType::float32:
      return NcclReduction{ncclFloat32, operation};
    case DType::float64:
      return NcclReduction{ncclFloat64, operation};
    case DType::float16:
      return NcclReduction{ncclFloat16, operation};
    case DType::bfloat16:
      return NcclReduction{ncclBfloat16, operation};
    case DType::int8:
      return NcclReduction{ncclInt8, operation};
    case DType::int32:
      return NcclReduction{ncclInt32, operation};
    case DType::int64:
      return NcclReduction{ncclInt64, operation};
    case DType::uint8:
    case DType::boolean:
      return NcclReduction{ncclUint8, operation};
    case DType::uint32:
      return NcclReduction{ncclUint32, operation};
    case DType::uint64:
      return NcclReduction{ncclUint64, operation};
    case DType::int16:
    case DType::uint16:
    case DType::float8_e4m3fn:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<NcclProblem> NcclHandle::start(const ncclUniqueId& id, int rank, int ranks,
                                             Limit limit, const Interruption& interruption) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result =
      nccl_.ncclCommInitRankConfig(&communicator_, ranks, id, rank, &config);
  return settle(result, limit, interruption);
}

std::optional<NcclProblem> NcclHandle::settle(ncclResult_t result, Limit limit,
                                              const Interruption& interruption) {
  const auto begin = Clock::now();
  while (result == ncclInProgress) {
    const auto waited = Clock::now() - begin;
    if (waited > limit)
      return NcclProblem{"NCCL was not done within " + seconds_text(limit),
                         fix_of(ncclRemoteError)};
    if (waited < std::chrono::milliseconds(1)) {
      std::this_thread::yield();
    } else {
      if (const std::optional<std::string> why = interruption())
        return NcclProblem{*why, fix_of(ncclRemoteError)};
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const ncclResult_t asked = nccl_.ncclCommGetAsyncError(communicator_, &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result == ncclSuccess) return std::nullopt;
  return problem_of(nccl_, result);
}

std::optional<NcclProblem> NcclHandle::problem() {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl_.ncclCommGetAsyncError(communicator_, &state);
  if (asked != ncclSuccess) return problem_of(nccl_, asked);
  if (state == ncclSuccess || state == ncclInProgress) return std::nullopt;
  return problem_of(nccl_, state);
}

void NcclHandle::finish(Limit limit) {
  if (communicator_ == nullptr) return;
  const auto nothing = [] { return std::optional<std::string>(); };
  if (settle(nccl_.ncclCommFinalize(communicator_), limit, nothing)) return abort();
  (void)nccl_.ncclCommDestroy(std::exchange(communicator_, nullptr));
}

void NcclHandle::abort() {
  if (communicator_ != nullptr) (void)nccl_.ncclCommAbort(std::exchange(communicator_, nullptr));
}

}  // namespace tandem::cuda
