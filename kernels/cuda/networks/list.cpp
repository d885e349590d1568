// The GPU's kernels for convolution, pooling and attention: cuDNN's before our own.
#include "kernels/cuda/networks/networks.h"

namespace tandem::cuda {

void add_network_kernels(KernelList& list, const Gpu& gpu) {
  const auto networks = std::make_shared<NetworkGpu>(gpu);
  add_cudnn_convolutions(list, networks);
  add_plain_convolutions(list, networks);
  add_poolings(list, networks);
  add_cudnn_attention(list, networks);
  add_plain_attention(list, networks);
}

}  // namespace tandem::cuda
