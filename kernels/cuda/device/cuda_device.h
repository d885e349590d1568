// The CUDA device over an interface of the runtime.
#pragma once

#include <memory>

#include "kernels/cuda/libraries/libraries.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda_devices.h"

namespace tandem::cuda {

/// What `make_cuda_device` does, with the given runtime and libraries. Without `cache_folder`
/// nothing is kept on disk.
std::unique_ptr<Device> make_device(const CudaOptions& options, std::shared_ptr<Runtime> runtime,
                                    std::shared_ptr<Libraries> libraries);

}  // namespace tandem::cuda
