// The error word that kernels on the card write, and its way to the host's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "engine/runtime/kernel.h"
#include "kernels/cuda/block/step_context.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {

/// One word in memory of the host that the card writes as well. What stands in it is reported to
/// the ErrorWord of the last step context, once the host has waited for the kernel.
class ErrorRelay {
 public:
  explicit ErrorRelay(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  cudaError_t open();  // the card is chosen
  void close() noexcept;
  DeviceErrorWord* word() const { return word_; }  // where kernels report
  /// Of the step context that a kernel is enqueued with; may be null.
  void report_to(ErrorWord* error) { to_.store(error, std::memory_order_release); }
  /// After the host has waited for a stream or an event. Never throws.
  void forward() noexcept;

 private:
  const std::shared_ptr<Runtime> runtime_;
  DeviceErrorWord* word_ = nullptr;
  std::atomic<ErrorWord*> to_{nullptr};
  std::mutex mutex_;
};

}  // namespace tandem::cuda
