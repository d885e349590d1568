// The CPU's kernels for normalisation, softmax, losses, dropout and attention.
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/rnn/rnn_kernels.h"

namespace tandem {

void add_network_kernels(KernelList& list) {
  add_softmax_kernels(list);
  add_loss_kernels(list);
  add_layer_normalization_kernels(list);
  add_batch_normalization_kernels(list);
  add_dropout_kernels(list);
  add_attention_kernels(list);
  add_rnn_kernels(list);
}

}  // namespace tandem
