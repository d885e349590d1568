// Short ways to write kernels of a GPU, beside those for all devices.
#pragma once

#include "engine/device/kernel_forms.h"
#include "kernels/cuda/context.h"

namespace tandem::cuda {

/// What a kernel's list asks of a request alone, by a function that has to know the GPU too.
template <class F>
auto on(const Gpu& gpu, F f) {
  return [gpu, f](const KernelRequest& request) { return f(request, gpu); };
}

}  // namespace tandem::cuda
