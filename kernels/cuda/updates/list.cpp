// The card's kernels for updates of dense states, norms of gradients and the loss scale.
#include "kernels/cuda/updates/update_lists.h"

namespace tandem::cuda {

void add_update_kernels(KernelList& list, const Card& card) {
  add_element_updates(list, card);
  add_tensor_updates(list, card);
  add_norm_kernels(list, card);
  add_loss_scale_kernels(list, card);
}

}  // namespace tandem::cuda
