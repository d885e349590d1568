// What the convolution kernels share: the geometry of one convolution and its weight layout.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/kernel.h"
#include "kernels/cpu/convolution/convolution_axis.h"

namespace tandem {

enum class ConvolutionPass { forward, input, weight };  // which of the three products

/// x [N, C, in...], weight [M, C / group, kernel...], y [N, M, out...].
struct Convolution {
  ConvolutionPass pass = ConvolutionPass::forward;
  Shape x, weight, y;
  std::vector<std::int64_t> strides, dilations, pads_begin, pads_end;
  std::int64_t group = 1;
  bool has_bias = false, has_residual = false, relu = false;

  std::int64_t images() const { return x[0]; }
  std::int64_t in_channels() const { return x[1]; }
  std::int64_t out_channels() const { return y[1]; }
  std::size_t spatial_rank() const { return x.size() - 2; }
  /// Positions of one image's map.
  std::int64_t in_positions() const { return element_count(x) / (x[0] * x[1]); }
  std::int64_t out_positions() const { return element_count(y) / (y[0] * y[1]); }
  std::int64_t taps() const { return element_count(weight) / (weight[0] * weight[1]); }
};

/// What a Conv, ConvFused, ConvGradInput or ConvGradWeight computes.
Convolution convolution_of(const KernelRequest& request);

ConvolutionAxis convolution_axis(const Convolution& c, std::size_t spatial_axis);

/// The one weight layout of all passes: kernel..., C / group, M from outermost to innermost, so
/// that each tap is a plain [C, M] matrix.
Layout tap_layout(const Shape& weight);

/// One convolution pass with x, weight, y (or their gradients) in channels-last or row-major
/// activations and the tap layout; oneDNN computes it.
std::unique_ptr<PreparedKernel> prepare_onednn_convolution(const KernelRequest& request);
/// Kernel of extent 1, stride 1, no padding, channels-last: one matrix product over all positions.
std::unique_ptr<PreparedKernel> prepare_pointwise_convolution(const KernelRequest& request);
/// Small channels-last maps: one product per tap, over the positions whose tap meets data.
std::unique_ptr<PreparedKernel> prepare_tap_convolution(const KernelRequest& request);
/// Weight gradient of whole channels over two axes, channels-last.
std::unique_ptr<PreparedKernel> prepare_weight_gradient(const KernelRequest& request);
/// Weight gradient of channels that each have a window of their own, channels-last.
std::unique_ptr<PreparedKernel> prepare_depthwise_weights(const KernelRequest& request);

}  // namespace tandem
