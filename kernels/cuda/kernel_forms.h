// Short ways to write kernels of a GPU, in addition to those for all devices.
#pragma once

#include "engine/device/kernel_forms.h"
#include "kernels/cuda/context.h"

namespace tandem::cuda {

/// Turns a function of a request and the GPU into one of the request only, as a kernel list needs.
template <class F>
auto on(const Gpu& gpu, F f) {
  return [gpu, f](const KernelRequest& request) { return f(request, gpu); };
}

}  // namespace tandem::cuda
