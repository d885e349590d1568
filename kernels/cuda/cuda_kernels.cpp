// The list of a card's kernels.
#include "kernels/cuda/context.h"

namespace tandem::cuda {

KernelList cuda_kernels(const Card& card) {
  KernelList list;
  add_pointwise_kernels(list, card);
  add_reduction_kernels(list, card);
  add_update_kernels(list, card);
  add_row_kernels(list, card);
  add_product_kernels(list, card);
  add_network_kernels(list, card);
  return list;
}

}  // namespace tandem::cuda
