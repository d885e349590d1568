#include "kernels/cuda/context.h"

#include <utility>

namespace tandem::cuda {

void GpuContext::fail(const char* what, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = what;
  failure_ += ": ";
  failure_ += why;
  failed_.store(true, std::memory_order_release);
}

std::string GpuContext::take_failure() {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  failed_.store(false, std::memory_order_release);
  return std::exchange(failure_, {});
}

void GpuContext::launch(const Launch& launch, void* queue) {
  const cudaError_t error = runtime->launch(launch, static_cast<cudaStream_t>(queue));
  if (error != cudaSuccess) fail(launch.name, runtime->error_text(error));
}

}  // namespace tandem::cuda
