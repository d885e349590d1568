// The card's kernels for scalar operators, fused bodies, moves of data and look-ups on any axis.
#include "kernels/cuda/pointwise/pointwise.h"

namespace tandem::cuda {

void add_pointwise_kernels(KernelList& list, const Card& card) {
  add_fused_kernels(list, card);
  add_function_kernels(list, card);
  add_move_kernels(list, card);
  add_mapped_kernels(list, card);
  add_gather_kernels(list, card);
}

}  // namespace tandem::cuda
