// The GPU's kernels for scalar operators, fused bodies, moves of data and lookups on any axis.
#include "kernels/cuda/pointwise/pointwise.h"

namespace tandem::cuda {

void add_pointwise_kernels(KernelList& list, const Gpu& gpu) {
  add_fused_kernels(list, gpu);
  add_function_kernels(list, gpu);
  add_move_kernels(list, gpu);
  add_mapped_kernels(list, gpu);
  add_gather_kernels(list, gpu);
}

}  // namespace tandem::cuda
