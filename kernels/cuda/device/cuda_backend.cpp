// The backend of the GPUs that policies name.
#include "kernels/cuda/cuda_devices.h"

namespace tandem {

CudaOptions cuda_options(const DeviceRequest& request) {
  CudaOptions options;
  options.name = request.name;
  options.ordinal = request.ordinal;
  options.memory_bytes = request.memory_bytes.value_or(0);
  options.allow_tf32 = request.allow_tf32;
  options.monitor = request.monitor;
  options.ranks = request.ranks->rendezvous();
  return options;
}

DeviceBackend cuda_backend() {
  return {.look = cuda_gpus, .describe = cuda_report, .open = [](const DeviceRequest& request) {
            return make_cuda_device(cuda_options(request));
          }};
}

}  // namespace tandem
