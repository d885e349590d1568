// What the lists of element-wise kernels and moves are made of, and what their files share.
#pragma once

#include "kernels/cuda/kernel_forms.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda {

void add_function_kernels(KernelList& list, const Gpu& gpu);  // functions.cpp
void add_fused_kernels(KernelList& list, const Gpu& gpu);     // fused.cpp
void add_move_kernels(KernelList& list, const Gpu& gpu);      // moves.cpp
void add_mapped_kernels(KernelList& list, const Gpu& gpu);    // mapped.cpp
void add_gather_kernels(KernelList& list, const Gpu& gpu);    // gather.cpp

/// Dense inputs of the full shape share the order that the first of them has, outputs have it too;
/// all others may come as they are. `reduced`: an output that is row-major; -1: there is none.
std::vector<Proposal> propose_one_order(const KernelRequest& request, const Shape& space,
                                        int reduced = -1);

/// A kernel for operands without elements.
inline std::unique_ptr<PreparedKernel> prepared_nothing() {
  return prepared([](const KernelArguments&) {});
}

}  // namespace tandem::cuda
