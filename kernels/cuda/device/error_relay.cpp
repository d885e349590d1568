#include "kernels/cuda/device/error_relay.h"

#include <limits>

namespace tandem::cuda {
namespace {

// A kernel writes its kind and node first and the value after: until then, this stands there.
constexpr long long no_value = std::numeric_limits<long long>::min();
constexpr int most_looks = 1'000'000;  // some milliseconds; a kernel needs one microsecond

}  // namespace

cudaError_t ErrorRelay::open() {
  void* memory = nullptr;
  const cudaError_t error = runtime_->allocate_pinned(memory, sizeof(DeviceErrorWord));
  if (error != cudaSuccess) return error;
  word_ = static_cast<DeviceErrorWord*>(memory);
  *word_ = {0, no_value};
  return error;
}

void ErrorRelay::close() noexcept {
  if (word_ != nullptr) (void)runtime_->release_pinned(word_);
  word_ = nullptr;
}

void ErrorRelay::forward() noexcept {
  std::atomic_ref<long long> packed(word_->packed), value(word_->value);
  if (packed.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  const long long first = packed.load(std::memory_order_acquire);
  if (first == 0) return;
  long long offending = value.load(std::memory_order_acquire);
  for (int look = 0; offending == no_value && look < most_looks; ++look)
    offending = value.load(std::memory_order_acquire);
  if (ErrorWord* to = to_.load(std::memory_order_acquire)) {
    to->report(static_cast<ErrorWord::Kind>(first >> 32), static_cast<std::int32_t>(first),
               offending == no_value ? 0 : offending);
  }
  value.store(no_value, std::memory_order_relaxed);
  packed.store(0, std::memory_order_release);
}

}  // namespace tandem::cuda
