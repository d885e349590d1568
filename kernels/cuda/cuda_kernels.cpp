// The list of a GPU's kernels.
#include "kernels/cuda/context.h"

namespace tandem::cuda {

KernelList cuda_kernels(const Gpu& gpu) {
  KernelList list;
  add_pointwise_kernels(list, gpu);
  add_reduction_kernels(list, gpu);
  add_update_kernels(list, gpu);
  add_row_kernels(list, gpu);
  add_product_kernels(list, gpu);
  add_network_kernels(list, gpu);
  return list;
}

}  // namespace tandem::cuda
