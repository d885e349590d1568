#include "kernels/cuda/device/waiting.h"

#include <thread>

namespace tandem::cuda {

void wait_for(DeviceShared& device, cudaEvent_t event, const char* what) {
  Runtime& runtime = *device.runtime;
  const auto start = std::chrono::steady_clock::now();
  do {
    const cudaError_t error = runtime.query(event);
    if (error != cudaErrorNotReady) return device.check(error, what);
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() - start < longest_spin);
  device.check(runtime.synchronize(event), what);
}

}  // namespace tandem::cuda
