// What add_update_kernels (list.cpp) puts together, a function a file.
#pragma once

#include "kernels/cuda/context.h"

namespace tandem::cuda {

void add_element_updates(KernelList& list, const Card& card);     // element_updates.cpp
void add_tensor_updates(KernelList& list, const Card& card);      // tensor_updates.cu
void add_norm_kernels(KernelList& list, const Card& card);        // norm_kernels.cu
void add_loss_scale_kernels(KernelList& list, const Card& card);  // loss_scale.cu

}  // namespace tandem::cuda
