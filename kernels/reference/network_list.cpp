// The list of reference kernels for convolution, pooling, normalisation, losses, attention and
// updates.
#include "kernels/reference/network_list.h"

#include "kernels/reference/reference_kernels.h"

namespace tandem {

void add_network_reference_kernels(KernelList& list) {
  reference::add_convolution_kernels(list);
  reference::add_pooling_kernels(list);
  reference::add_batch_normalization_kernels(list);
  reference::add_layer_normalization_kernels(list);
  reference::add_softmax_kernels(list);
  reference::add_loss_kernels(list);
  reference::add_dropout_kernels(list);
  reference::add_grid_sample_kernels(list);
  reference::add_random_kernels(list);
  reference::add_attention_kernels(list);
  reference::add_rnn_scan_kernels(list);
  reference::add_update_kernels(list);
  reference::add_row_index_kernels(list);
  reference::add_row_update_kernels(list);
  reference::add_rows_ahead_kernels(list);
  reference::add_embedding_bag_kernels(list);
  reference::add_cached_row_kernels(list);
}

}  // namespace tandem
