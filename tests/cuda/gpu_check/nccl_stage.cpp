// NCCL with one rank: starts, adds, adds in a graph, is aborted; nothing hangs.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "kernels/cuda/libraries/nccl.h"
#include "tests/cuda/gpu_check/distance.h"
#include "tests/cuda/gpu_check/stages.h"

namespace tandem::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds limit{20};

class Communicator {
 public:
  Communicator(const cuda::Nccl& nccl) : nccl_(nccl) {
    ncclUniqueId id;
    check(nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    begin(nccl.ncclCommInitRankConfig(&communicator_, 1, id, 0, &config), "ncclCommInitRankConfig");
  }
  ~Communicator() {
    if (communicator_ != nullptr) (void)nccl_.ncclCommAbort(communicator_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void add(const void* from, void* to, std::size_t count, cudaStream_t stream) {
    begin(nccl_.ncclAllReduce(from, to, count, ncclFloat32, ncclSum, communicator_, stream),
          "ncclAllReduce");
  }
  void abort() {
    const ncclComm_t gone = communicator_;
    communicator_ = nullptr;
    check(nccl_.ncclCommAbort(gone), "ncclCommAbort");
  }

 private:
  void check(ncclResult_t result, const char* what) {
    if (result != ncclSuccess)
      throw std::runtime_error(std::string(what) + ": " + nccl_.ncclGetErrorString(result));
  }
  /// Of a call that goes on by itself.
  void begin(ncclResult_t result, const char* what) {
    const auto until = Clock::now() + limit;
    while (result == ncclInProgress) {
      if (Clock::now() > until)
        throw std::runtime_error(std::string(what) + " was not done in 20 s");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      check(nccl_.ncclCommGetAsyncError(communicator_, &result), "ncclCommGetAsyncError");
    }
    check(result, what);
  }

  const cuda::Nccl& nccl_;
  ncclComm_t communicator_ = nullptr;
};

constexpr std::size_t count = std::size_t{1} << 20;

}  // namespace

void run_nccl(CheckCard& card, const Options& options, Report& report) {
  (void)options;
  const cuda::Nccl* const nccl = card.libraries().nccl();
  if (nccl == nullptr) return report.skipped("NCCL", "it cannot be used: see tandem doctor");
  cuda::Runtime& runtime = card.runtime();
  card.operands().clear();
  HostTensor numbers(TensorType{DType::float32, {static_cast<std::int64_t>(count)}});
  for (std::size_t i = 0; i < count; ++i)
    numbers.as<float>()[i] = static_cast<float>(i % 1000) * 0.25f + 1;
  const void* const from = card.operands().put(numbers.data(), numbers.bytes());
  void* const to = card.operands().room(numbers.bytes());
  const auto poison = [&] {
    card.check(runtime.fill(to, 0xff, numbers.bytes(), card.stream()), "filling");
  };
  const auto check_sum = [&](const std::string& check) {
    card.synchronize();
    HostTensor found(numbers.type());
    card.operands().get(found.data(), to, found.bytes());
    report.measured(check, distance(found, numbers), 0);
  };

  Communicator one(*nccl);
  report.passed("a communicator of one rank");
  poison();
  one.add(from, to, count, card.stream());
  check_sum("a sum over one rank");

  card.check(runtime.begin_capture(card.stream()), "beginning a capture");
  one.add(from, to, count, card.stream());
  cudaGraphExec_t graph = nullptr;
  card.check(runtime.end_capture(card.stream(), graph), "ending a capture");
  poison();
  for (int i = 0; i < 3; ++i)
    card.check(runtime.launch_graph(graph, card.stream()), "launching a graph");
  check_sum("a captured sum");
  card.check(runtime.destroy_graph(graph), "destroying a graph");

  for (int i = 0; i < 50; ++i) one.add(from, to, count, card.stream());
  const auto begin = Clock::now();
  one.abort();
  card.check(runtime.synchronize_card(), "waiting for the card");
  report.value("aborting", std::chrono::duration<double>(Clock::now() - begin).count(), "s");
  report.passed("a communicator aborted while it works");
}

}  // namespace tandem::gpu_check
