// The list of a GPU's kernels, best first.
#include "kernels/cuda/context.h"
#include "kernels/cuda/networks/networks.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/updates/update_lists.h"

namespace tandem::cuda {

void add_pointwise_kernels(KernelList& list, const Gpu& gpu) {
  add_fused_kernels(list, gpu);
  add_function_kernels(list, gpu);
  add_move_kernels(list, gpu);
  add_mapped_kernels(list, gpu);
  add_gather_kernels(list, gpu);
}

void add_update_kernels(KernelList& list, const Gpu& gpu) {
  add_element_updates(list, gpu);
  add_tensor_updates(list, gpu);
  add_norm_kernels(list, gpu);
  add_loss_scale_kernels(list, gpu);
}

void add_row_kernels(KernelList& list, const Gpu& gpu) {
  add_lookups(list, gpu);
  add_bags(list, gpu);
  add_unique_indices(list, gpu);
  add_marks(list, gpu);
  add_rows_ahead(list, gpu);
  add_cached_rows(list, gpu);
  add_row_sums(list, gpu);
  add_row_updates(list, gpu);
}

// cuDNN's before our own.
void add_network_kernels(KernelList& list, const Gpu& gpu) {
  const auto networks = std::make_shared<NetworkGpu>(gpu);
  add_cudnn_convolutions(list, networks);
  add_plain_convolutions(list, networks);
  add_poolings(list, networks);
  add_cudnn_attention(list, networks);
  add_plain_attention(list, networks);
}

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
