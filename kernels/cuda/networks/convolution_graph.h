// One convolution pass as cuDNN computes it, only from its shapes.
#pragma once

#include "engine/operators/activation.h"
#include "kernels/cuda/networks/graph.h"

namespace tandem::cuda {

enum class ConvolutionPass : std::uint8_t {
  forward,
  input,
  weight
};  // which of the three products

/// x [N, C, in...], weight [M, C / group, kernel...], y [N, M, out...]; 1 to 3 spatial axes.
struct ConvolutionShape {
  ConvolutionPass pass = ConvolutionPass::forward;
  DType dtype = DType::float32;
  Shape x, weight, y;
  ConvolutionSteps steps;
  bool has_bias = false, has_residual = false;  // only in the forward pass, as is the activation
  Activation activation = Activation::none;
  bool is_channels_last = true;  // activations and weights alike
};

/// Tensors in memory: x, weight, bias, residual, y; dy, weight, dx; or x, dy, dweight. Absent ones
/// are left out.
NetworkGraph convolution_graph(const ConvolutionShape& shape);

}  // namespace tandem::cuda
