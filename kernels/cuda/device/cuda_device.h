// The CUDA device over an interface of the runtime.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/cuda_devices.h"
#include "kernels/cuda/libraries/libraries.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {

/// What `make_cuda_device` does, with the given runtime and libraries. Without `cache_folder`
/// nothing is kept on disk.
std::unique_ptr<Device> make_device(const CudaOptions& options, std::shared_ptr<Runtime> runtime,
                                    std::shared_ptr<Libraries> libraries);

/// Where the user's compiled kernels and plans are kept: $XDG_CACHE_HOME/tandem/cuda, else
/// ~/.cache/tandem/cuda; "" where the user has no such folder.
std::string own_cache_folder();

}  // namespace tandem::cuda
