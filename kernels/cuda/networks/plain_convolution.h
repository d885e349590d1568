// Convolutions by their definitions: for shapes and machines where no library computes them.
#pragma once

#include <cstdint>

#include "engine/operators/activation.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/networks/convolution_graph.h"

namespace tandem::cuda {

/// Strides of [N, C, i, j, k], or of [M, C / group, i, j, k], in elements.
struct ConvolutionMap {
  std::int64_t outer = 0, inner = 0, axis[3] = {};
};

struct ConvolutionAxis {
  int in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0;
};

struct PlainConvolution {
  ConvolutionPass pass = ConvolutionPass::forward;
  DType dtype = DType::float32;
  std::int64_t images = 0, groups = 1;
  std::int64_t in_channels = 1, out_channels = 1;  // channels of one group
  ConvolutionAxis axes[3];                         // missing ones come first
  ConvolutionMap x, weight, y, residual;           // or their gradients
  std::int64_t bias_stride = 0;
  Activation activation = Activation::none;
  bool channels_inside = false;  // channels are the innermost axis of the result
};

/// The two that are read, the one that is written; bias and residual may be null.
struct ConvolutionAddresses {
  const void *a = nullptr, *b = nullptr, *bias = nullptr, *residual = nullptr;
  void* result = nullptr;
};

void run_convolution(GpuContext& gpu, const PlainConvolution& convolution,
                     const ConvolutionAddresses& at, void* queue);

}  // namespace tandem::cuda
