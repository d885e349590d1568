// How long operations on streams take, without waiting for any: a CUDA event follows each.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {

class WatchedOperations {
 public:
  using Clock = std::chrono::steady_clock;
  struct Overdue {
    std::string name;
    std::chrono::milliseconds after;
  };

  explicit WatchedOperations(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  ~WatchedOperations();
  WatchedOperations(const WatchedOperations&) = delete;
  WatchedOperations& operator=(const WatchedOperations&) = delete;

  /// Takes what it needs; the GPU is chosen, here and in all calls.
  cudaError_t open();
  /// The operation was just enqueued. While `most` are under way none is added: an older one that
  /// hangs is found as well.
  cudaError_t add(std::string_view name, cudaStream_t stream);
  /// Forgets finished operations; `overdue` gets the first one that has taken longer than the
  /// limit.
  cudaError_t look(std::chrono::milliseconds limit, std::optional<Overdue>& overdue);

 private:
  static constexpr std::size_t most = 64, most_name = 95;
  struct Watched {
    cudaEvent_t event = nullptr;
    Clock::time_point since;
    std::array<char, most_name + 1> name{};
  };
  const std::shared_ptr<Runtime> runtime_;
  std::array<Watched, most> ring_;
  std::size_t first_ = 0, count_ = 0;
  Clock::time_point last_done_;  // seen
};

}  // namespace tandem::cuda
