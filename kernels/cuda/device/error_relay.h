// The error words that kernels on the GPU write, and their way to the host's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "engine/device/kernel.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/shared/block/step_context.h"

namespace tandem::cuda {

/// Words in memory of the host that the GPU writes as well, one for each of the host's ErrorWords
/// that were in use last: steps that run at the same time report to different words. What a word
/// holds goes to its ErrorWord once the host has waited for the kernel.
class ErrorRelay {
 public:
  static constexpr std::size_t words = 8;

  explicit ErrorRelay(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  cudaError_t open();  // the GPU is chosen
  void close() noexcept;
  /// Where kernels report that are enqueued with a step context of this ErrorWord; may be null.
  DeviceErrorWord* word_for(ErrorWord* error);
  /// To be called after the host has waited for a stream or an event. Never throws.
  void forward() noexcept;

 private:
  struct Word {
    DeviceErrorWord* device = nullptr;
    ErrorWord* host = nullptr;
    bool is_used = false;
  };
  static void forward(const Word& word) noexcept;

  const std::shared_ptr<Runtime> runtime_;
  void* memory_ = nullptr;
  std::array<Word, words> words_;
  std::size_t next_ = 0;  // the word that a new ErrorWord gets
  std::mutex mutex_;      // guards words_ and next_
};

}  // namespace tandem::cuda
