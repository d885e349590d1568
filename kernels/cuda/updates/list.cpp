// The GPU's kernels for updates of dense states, norms of gradients and the loss scale.
#include "kernels/cuda/updates/update_lists.h"

namespace tandem::cuda {

void add_update_kernels(KernelList& list, const Gpu& gpu) {
  add_element_updates(list, gpu);
  add_tensor_updates(list, gpu);
  add_norm_kernels(list, gpu);
  add_loss_scale_kernels(list, gpu);
}

}  // namespace tandem::cuda
