// The card's kernels for convolution, pooling and attention: cuDNN's before our own.
#include "kernels/cuda/networks/networks.h"

namespace tandem::cuda {

void add_network_kernels(KernelList& list, const Card& card) {
  const auto networks = std::make_shared<NetworkCard>(card);
  add_cudnn_convolutions(list, networks);
  add_plain_convolutions(list, networks);
  add_poolings(list, networks);
  add_cudnn_attention(list, networks);
  add_plain_attention(list, networks);
}

}  // namespace tandem::cuda
