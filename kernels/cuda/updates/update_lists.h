// What add_update_kernels (cuda_kernels.cpp) puts together, a function a file.
#pragma once

#include "kernels/cuda/kernel_forms.h"

namespace tandem::cuda {

void add_element_updates(KernelList& list, const Gpu& gpu);     // element_updates.cpp
void add_tensor_updates(KernelList& list, const Gpu& gpu);      // tensor_updates.cu
void add_norm_kernels(KernelList& list, const Gpu& gpu);        // norm_kernels.cu
void add_loss_scale_kernels(KernelList& list, const Gpu& gpu);  // loss_scale.cu

}  // namespace tandem::cuda
