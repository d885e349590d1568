#include "kernels/cuda/collectives/watched_operations.h"

#include <algorithm>

namespace tandem::cuda {

WatchedOperations::~WatchedOperations() {
  for (Watched& watched : ring_) {
    if (watched.event != nullptr) (void)runtime_->destroy_event(watched.event);
  }
}

cudaError_t WatchedOperations::open() {
  for (Watched& watched : ring_) {
    const cudaError_t error = runtime_->make_event(watched.event);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t WatchedOperations::add(std::string_view name, cudaStream_t stream) {
  if (count_ == most) return cudaSuccess;
  Watched& watched = ring_[(first_ + count_) % most];
  const cudaError_t error = runtime_->record(watched.event, stream);
  if (error != cudaSuccess) return error;
  ++count_;
  watched.since = Clock::now();
  const std::size_t length = std::min(name.size(), most_name);
  std::copy_n(name.data(), length, watched.name.data());
  watched.name[length] = 0;
  return cudaSuccess;
}

cudaError_t WatchedOperations::look(std::chrono::milliseconds limit,
                                    std::optional<Overdue>& overdue) {
  while (count_ > 0) {
    const Watched& first = ring_[first_];
    const cudaError_t error = runtime_->query(first.event);
    if (error != cudaSuccess && error != cudaErrorNotReady) return error;
    const Clock::time_point now = Clock::now();
    if (error == cudaErrorNotReady) {
      const auto taken = now - std::max(first.since, last_done_);
      if (taken > limit)
        overdue = {first.name.data(), std::chrono::duration_cast<std::chrono::milliseconds>(taken)};
      return cudaSuccess;
    }
    last_done_ = now;
    first_ = (first_ + 1) % most;
    --count_;
  }
  return cudaSuccess;
}

}  // namespace tandem::cuda
