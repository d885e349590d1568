#include "kernels/cuda/device/error_relay.h"

#include <limits>

namespace tandem::cuda {
namespace {

// A kernel writes its kind and node first and the value after: until then, this stands there.
constexpr long long no_value = std::numeric_limits<long long>::min();
constexpr int most_looks = 1'000'000;  // some milliseconds; a kernel needs one microsecond

}  // namespace

cudaError_t ErrorRelay::open() {
  const cudaError_t error = runtime_->allocate_pinned(memory_, words * sizeof(DeviceErrorWord));
  if (error != cudaSuccess) return error;
  auto* next = static_cast<DeviceErrorWord*>(memory_);
  for (Word& word : words_) {
    *next = {0, no_value};
    word = {next++, nullptr, false};
  }
  return error;
}

void ErrorRelay::close() noexcept {
  if (memory_ != nullptr) (void)runtime_->release_pinned(memory_);
  memory_ = nullptr;
  words_ = {};
}

DeviceErrorWord* ErrorRelay::word_for(ErrorWord* error) {
  const std::lock_guard lock(mutex_);
  for (const Word& word : words_) {
    if (word.is_used && word.host == error) return word.device;
  }
  Word& word = words_[next_];
  next_ = (next_ + 1) % words;
  forward(word);
  word.host = error;
  word.is_used = true;
  return word.device;
}

void ErrorRelay::forward() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Word& word : words_) forward(word);
}

void ErrorRelay::forward(const Word& word) noexcept {
  if (word.device == nullptr) return;
  std::atomic_ref<long long> packed(word.device->packed), value(word.device->value);
  const long long first = packed.load(std::memory_order_acquire);
  if (first == 0) return;
  long long offending = value.load(std::memory_order_acquire);
  for (int look = 0; offending == no_value && look < most_looks; ++look)
    offending = value.load(std::memory_order_acquire);
  if (word.host != nullptr) {
    word.host->report(static_cast<ErrorWord::Kind>(first >> 32), static_cast<std::int32_t>(first),
                      offending == no_value ? 0 : offending);
  }
  value.store(no_value, std::memory_order_relaxed);
  packed.store(0, std::memory_order_release);
}

}  // namespace tandem::cuda
