// Ranks as threads: each has a fake runtime with one GPU, a device on it and a communicator.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/graph/error.h"
#include "kernels/cuda/collectives/nccl_communicator.h"
#include "kernels/cuda/device/cuda_device.h"
#include "tests/cuda/support/fake_nccl.h"

namespace tandem::testing {

/// What ranks in one process exchange.
class RankHub {
 public:
  RankHub(int ranks, std::chrono::milliseconds limit) : ranks_(ranks), limit_(limit) {}

  std::vector<std::string> exchange(int rank, int number, const std::string& name,
                                    const std::string& bytes) {
    std::unique_lock lock(mutex_);
    std::map<int, std::string>& at = exchanges_[number];
    at[rank] = bytes;
    changed_.notify_all();
    const auto is_decided = [&] { return at.size() == ranks_ || !failure_.empty(); };
    if (!changed_.wait_for(lock, limit_, is_decided)) {
      for (std::size_t r = 0; r < ranks_; ++r) {
        if (at.count(static_cast<int>(r)) == 0)
          failure_ += "rank " + std::to_string(r) + " has not come at '" + name + "'";
      }
      changed_.notify_all();
    }
    if (at.size() < ranks_) throw Error(ErrorKind::runtime, Diagnostic{.message = failure_});
    std::vector<std::string> all;
    for (const auto& [r, text] : at) all.push_back(text);
    return all;
  }
  void lose(const std::string& text) {
    const std::lock_guard lock(mutex_);
    failure_ = text;
    changed_.notify_all();
  }
  std::optional<std::string> failure() {
    const std::lock_guard lock(mutex_);
    return failure_.empty() ? std::nullopt : std::optional(failure_);
  }
  int ranks() const { return static_cast<int>(ranks_); }

 private:
  const std::size_t ranks_;
  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::map<int, std::string>> exchanges_;
  std::string failure_;
};

class ThreadRendezvous final : public Rendezvous {
 public:
  ThreadRendezvous(std::shared_ptr<RankHub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return hub_->ranks(); }
  std::vector<std::string> exchange(const std::string& name, const std::string& bytes) override {
    return hub_->exchange(rank_, number_++, name, bytes);
  }
  std::optional<std::string> failure() override { return hub_->failure(); }
  void fail(const std::string& why) override { hub_->lose(why); }

 private:
  const std::shared_ptr<RankHub> hub_;
  const int rank_;
  int number_ = 0;
};

struct ThreadRanksOptions {
  int ranks = 2;
  bool late = false;  // set in the runtimes
  cuda::NcclOptions nccl = {};
  std::chrono::milliseconds exchange_limit{10000};
};

/// The objects of one rank on its thread.
struct ThreadRank {
  int rank = 0;
  std::shared_ptr<RankHub> hub;
  std::shared_ptr<Rendezvous> rendezvous;
  std::shared_ptr<FakeRuntime> runtime;
  std::shared_ptr<cuda::Libraries> libraries;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  cuda::NcclOptions nccl;

  std::unique_ptr<Communicator> communicator() {
    return cuda::make_nccl_communicator(nccl, rendezvous, runtime, libraries);
  }
  /// Allocates memory on the GPU that holds these bytes.
  std::unique_ptr<Memory> put(const std::string& bytes) {
    auto memory = device->allocate(std::max<std::size_t>(bytes.size(), 1));
    device->to_device(memory->address(), bytes.data(), bytes.size());
    return memory;
  }
  std::string get(Memory& memory) {
    std::string bytes(memory.bytes(), 0);
    device->to_host(bytes.data(), memory.address(), bytes.size());
    return bytes;
  }
};

/// Runs f for each rank in a thread and returns the text of what each throws. Checks that nothing
/// is left over and that no rule of the runtime was broken; the caller checks the rules of NCCL.
inline std::vector<std::string> on_ranks(const ThreadRanksOptions& options, FakeNccl& nccl,
                                         const std::function<void(ThreadRank&)>& f) {
  const auto hub = std::make_shared<RankHub>(options.ranks, options.exchange_limit);
  std::vector<std::string> thrown(static_cast<std::size_t>(options.ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < options.ranks; ++r) {
    threads.emplace_back([&, r] {
      FakeRuntimeOptions runtime_options;
      runtime_options.late = options.late;
      runtime_options.memory_bytes = std::size_t{16} << 20;
      const auto runtime = std::make_shared<FakeRuntime>(runtime_options);
      try {
        ThreadRank rank;
        rank.rank = r;
        rank.hub = hub;
        rank.rendezvous = std::make_shared<ThreadRendezvous>(hub, r);
        rank.runtime = runtime;
        rank.libraries = nccl_alone(nccl.table());
        rank.nccl = options.nccl;
        nccl.on_this_thread(runtime);
        CudaOptions of_device;
        of_device.memory_bytes = std::size_t{8} << 20;
        rank.device = cuda::make_device(of_device, runtime, rank.libraries);
        rank.stream = rank.device->make_stream();
        f(rank);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(r)] = error.what();
      }
      nccl.on_this_thread(nullptr);
      EXPECT_EQ(runtime->problems(), std::vector<std::string>()) << "rank " << r;
      EXPECT_EQ(runtime->leaks(), std::vector<std::string>()) << "rank " << r;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(nccl.live_communicators(), 0);
  return thrown;
}

}  // namespace tandem::testing
